-- wrk -s rotate.lua URL -- METHOD CONTENT-TYPE BODY-FILE...
-- 1,024 requests in turn: the bodies rotate and every request has another X-Request-Id, so that nothing can be cached
-- by request bytes. Without a body file there is no body. Prints what happened as one line of JSON.
local requests, last = {}, 0

function init(args)
  local bodies = {}
  for i = 3, #args do
    local file = assert(io.open(args[i], "rb"))
    bodies[#bodies + 1] = file:read("*a")
    file:close()
  end
  local headers = {}
  if #bodies > 0 then headers["Content-Type"] = args[2] end
  for i = 1, 1024 do
    headers["X-Request-Id"] = string.format("%08x", i * 2654435761 % 4294967296)
    requests[i] = wrk.format(args[1], wrk.path, headers, bodies[(i - 1) % math.max(#bodies, 1) + 1])
  end
end

function request()
  last = last % #requests + 1
  return requests[last]
end

function done(summary, latency, _)
  local errors = summary.errors
  io.write(string.format(
    '{"answers": %d, "bad_status": %d, "socket_errors": %d, "p50_us": %d, "p99_us": %d}\n',
    summary.requests, errors.status, errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50), latency:percentile(99)))
end
