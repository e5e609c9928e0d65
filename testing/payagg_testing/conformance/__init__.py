"""Whether a service keeps the interface: state machines that drive any service by its URL, and a kit for receivers.
Schemathesis judges single answers: it has no drain, business or event."""
