"""Whether a service keeps the interface: state machines that drive any service by its URL, and a kit for receivers.
The domain alone is judged by the same machines (`DomainService`), as two models of one rule drift apart. Schemathesis
judges single answers: it has no drain, business or event."""
