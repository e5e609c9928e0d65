-- wrk script: rotates over prepared calls and prints one JSON line of results.
-- Arguments after `--`: mode (initiate | get), the file of calls (a credential and, to get, a path in each line), a nonce
-- that makes idempotency keys unique.
local calls, mode, nonce, at, thread_id = {}, "get", "0", 0, 0
local threads = 0

function setup(thread)
  thread:set("thread_id", threads)
  threads = threads + 1
end

function init(args)
  mode, nonce = args[1], args[3]
  for line in io.lines(args[2]) do
    local credential, path = line:match("^(%S+)%s*(%S*)$")
    calls[#calls + 1] = { credential, path }
  end
  at = math.floor(#calls / 2) * thread_id
end

function request()
  at = at + 1
  local call = calls[at % #calls + 1]
  local headers = { ["Authorization"] = "Bearer " .. call[1] }
  if mode == "get" then
    return wrk.format("GET", call[2], headers)
  end
  headers["Content-Type"] = "application/json"
  local body = string.format(
    '{"amount":150000,"customerEmail":"payer@example.com","customerName":"Ada Obi",'
      .. '"callbackUrl":"https://shop.example/thanks","metadata":{"order":"%d"},"idempotencyKey":"%s-%d-%d"}',
    at, nonce, thread_id, at)
  return wrk.format("POST", "/api/v1/payments/initiate", headers, body)
end

function done(summary, latency, requests)
  local errors = summary.errors
  print(string.format(
    'RESULT {"rate": %.1f, "p50_ms": %.3f, "p99_ms": %.3f, "requests": %d, "errors": '
      .. '{"connect": %d, "read": %d, "write": %d, "status": %d, "timeout": %d}}',
    summary.requests / summary.duration * 1e6, latency:percentile(50) / 1000, latency:percentile(99) / 1000,
    summary.requests, errors.connect, errors.read, errors.write, errors.status, errors.timeout))
end
