-- Wireshark's dissector for what Headgate puts on a wire: the maxQD shim in UDP, the maxQD option of TCP,
-- and the headers between a switch and its controller with the poll report behind them.
--
--   tshark -X lua_script:headgate.lua -r hosts.pcap
--   tshark -X lua_script:headgate.lua -o headgate.udp_port:50151 -Y 'headgate.max_qd > 100' -r hosts.pcap
--
-- A capture of a switch's CPU port has no link type of its own. Packets to the controller are read
-- as USER14 and packets from it as USER15 (link types 161 and 162):
--
--   editcap -T user14 cpu.pcap in.pcap && tshark -X lua_script:headgate.lua -V -r in.pcap
--
-- The layouts are those of p4src/shared/headers.p4, and of int/maxqd/option.go for the option.

-- register gives a protocol its fields, some of them in lists.
local function register(proto, fields)
  local all = {}
  local function add(t)
    for _, f in pairs(t) do
      if type(f) == "table" then add(f) else all[#all + 1] = f end
    end
  end
  add(fields)
  proto.fields = all
end

-- The maxQD shim ------------------------------------------------------------------------

local shim = Proto("headgate", "Headgate maxQD shim")
local next_header = { [0] = "opaque", [1] = "BTH" }
local s = {
  version = ProtoField.uint8("headgate.version", "Version", base.DEC, nil, 0xf0),
  echo = ProtoField.bool("headgate.echo", "Echo: carries a value back", 8, nil, 0x08),
  reserved = ProtoField.uint8("headgate.reserved", "Reserved", base.DEC, nil, 0x07),
  next = ProtoField.uint8("headgate.next_header", "Next header", base.DEC, next_header),
  max_qd = ProtoField.uint16("headgate.max_qd", "Largest queueing delay, in the fabric's units", base.DEC),
}
register(shim, s)
local saturated = ProtoExpert.new("headgate.saturated", "The queueing delay is this long or longer", expert.group.SEQUENCE, expert.severity.NOTE)
shim.experts = { saturated }

local udp_ports = DissectorTable.get("udp.port")
local roce = udp_ports:get_dissector(4791)
local data = Dissector.get("data")

-- What has another version or reserved bits set is not ours, as the switches have it.
function shim.dissector(buf, pinfo, tree)
  if buf:len() < 4 or buf(0, 1):bitfield(0, 4) ~= 1 or buf(0, 1):bitfield(5, 3) ~= 0 then return 0 end
  local t = tree:add(shim, buf(0, 4))
  t:add(s.version, buf(0, 1))
  t:add(s.echo, buf(0, 1))
  t:add(s.reserved, buf(0, 1))
  t:add(s.next, buf(1, 1))
  local qd = t:add(s.max_qd, buf(2, 2))
  if buf(2, 2):uint() == 0xffff then qd:add_proto_expert_info(saturated) end
  t:append_text((", maxQD %d%s"):format(buf(2, 2):uint(), buf(0, 1):bitfield(4) == 1 and ", echo" or ""))
  local rest = buf(4):tvb()
  if buf(1, 1):uint() == 1 and roce then
    roce:call(rest, pinfo, tree)
  else
    data:call(rest, pinfo, tree)
  end
  pinfo.cols.protocol:append("+maxQD")
  return buf:len()
end

shim.prefs.udp_port = Pref.uint("UDP port", 50151, "soze.udp_port of the fabric file")
local port = shim.prefs.udp_port
udp_ports:add(port, shim)
function shim.prefs_changed()
  if port == shim.prefs.udp_port then return end
  udp_ports:remove(port, shim)
  port = shim.prefs.udp_port
  udp_ports:add(port, shim)
end

-- The maxQD option of TCP -----------------------------------------------------------------

-- Wireshark's own dissector reads the options first, so that those of others stay as they are.
local option = Proto("headgate_tcp", "Headgate maxQD option")
local o = {
  max_qd = ProtoField.uint16("headgate_tcp.max_qd", "Largest queueing delay, in the fabric's units", base.DEC),
  echo = ProtoField.uint16("headgate_tcp.echo", "Echo: the largest queueing delay that the sender received last", base.DEC),
}
register(option, o)
local offered = ProtoExpert.new("headgate_tcp.offered", "The sender offers maxQD", expert.group.SEQUENCE, expert.severity.CHAT)
local long = ProtoExpert.new("headgate_tcp.saturated", "The queueing delay is this long or longer", expert.group.SEQUENCE, expert.severity.NOTE)
option.experts = { offered, long }
local tcp_options = Field.new("tcp.options")

local function read_option(b, pinfo, tree)
  local t = tree:add(option, b)
  pinfo.cols.protocol:append("+maxQD")
  if b:len() == 4 then
    t:add_proto_expert_info(offered)
    return
  end
  local qd, echo = b(4, 2), b(6, 2)
  local item = t:add(o.max_qd, qd)
  if qd:uint() == 0xffff then item:add_proto_expert_info(long) end
  t:add(o.echo, echo)
  t:append_text((", maxQD %d, echo %d"):format(qd:uint(), echo:uint()))
end

function option.dissector(_, pinfo, tree)
  for _, all in ipairs({ tcp_options() }) do
    local b, at = all.range, 0
    while at + 2 <= b:len() and b(at, 1):uint() ~= 0 do
      local kind, length = b(at, 1):uint(), b(at + 1, 1):uint()
      if kind == 1 then
        length = 1
      elseif length < 2 or at + length > b:len() then
        break
      elseif kind == 254 and (length == 4 or length == 8) and b(at + 2, 2):uint() == 0x4847 then
        read_option(b(at, length), pinfo, tree)
      end
      at = at + length
    end
  end
end

register_postdissector(option)

-- The poll report -----------------------------------------------------------------------

local report = Proto("headgate_report", "Headgate poll report")
local layouts = { [0] = "port and buffer", [1] = "port" }
local R = "headgate_report"

local function u32(abbr, name) return ProtoField.uint32(R .. "." .. abbr, name, base.DEC) end

local function eight(abbr, name)
  local fields = {}
  for i = 0, 7 do fields[i + 1] = u32(abbr .. "_" .. i, name .. " " .. i) end
  return fields
end

local r = {
  layout = ProtoField.uint16(R .. ".layout", "Layout", base.DEC, layouts, 0xfe00),
  port = ProtoField.uint16(R .. ".port", "Port", base.DEC, nil, 0x01ff),
  last_delay = ProtoField.uint16(R .. ".last_delay", "Last queueing delay, in the fabric's units", base.DEC),
  time = ProtoField.uint64(R .. ".time", "Time, in ticks of the switch's clock", base.DEC),
  departed_bytes = ProtoField.uint64(R .. ".departed_bytes", "Departed bytes", base.DEC),
  departed_packets = ProtoField.uint64(R .. ".departed_packets", "Departed packets", base.DEC),
  admission_drops = u32("admission_drops", "Admission drops"),
  queue = eight("queue", "Bytes of queue"),
  victim = ProtoField.bool(R .. ".victim", "Victim port (SPFC)", 8, nil, 0x02),
  port_paused = ProtoField.bool(R .. ".port_paused", "Paused as a whole (DSH)", 8, nil, 0x01),
  paused = ProtoField.uint8(R .. ".paused_queues", "Paused classes", base.HEX),
  last_pause = ProtoField.uint64(R .. ".last_pause", "Last PAUSE, in ticks", base.DEC),
  port_shared = u32("port_shared", "Shared bytes of the port's lossless classes"),
  insured = u32("insured", "Insured bytes of the port"),
  private = eight("private", "Private bytes of class"),
  shared = eight("shared", "Shared bytes of class"),
  headroom = eight("headroom", "Headroom bytes of class"),
}
local pools = {}
for _, when in ipairs({ "used", "peak" }) do
  for _, pool in ipairs({ "private", "shared", "headroom", "insurance" }) do
    pools[#pools + 1] = u32(when .. "_" .. pool, ("%s %s bytes of the switch"):format(when == "used" and "Used" or "Most", pool))
  end
end
r.pools = pools
register(report, r)

-- words adds consecutive fields of four bytes and returns the offset behind them.
local function words(t, buf, at, fields)
  for _, f in ipairs(fields) do
    t:add(f, buf(at, 4))
    at = at + 4
  end
  return at
end

local function account(t, buf, at)
  t:add(r.victim, buf(at, 1))
  t:add(r.port_paused, buf(at, 1))
  t:add(r.paused, buf(at + 1, 1))
  t:add(r.last_pause, buf(at + 2, 6))
  at = words(t, buf, at + 8, { r.port_shared, r.insured })
  for _, fields in ipairs({ r.private, r.shared, r.headroom }) do at = words(t, buf, at, fields) end
  return words(t, buf, at, r.pools)
end

local sizes = { [0] = 58 + 144, [1] = 58 }

function report.dissector(buf, pinfo, tree)
  local layout = buf:len() >= 2 and buf(0, 1):bitfield(0, 7)
  local size = layout and sizes[layout]
  if not size or buf:len() < size then return 0 end
  local t = tree:add(report, buf(0, size))
  t:append_text((", port %d"):format(buf(0, 2):bitfield(7, 9)))
  t:add(r.layout, buf(0, 2))
  t:add(r.port, buf(0, 2))
  t:add(r.last_delay, buf(2, 2))
  t:add(r.time, buf(4, 6))
  t:add(r.departed_bytes, buf(10, 6))
  t:add(r.departed_packets, buf(16, 6))
  t:add(r.admission_drops, buf(22, 4))
  local at = words(t, buf, 26, r.queue)
  if layout == 0 then account(t, buf, at) end
  pinfo.cols.protocol = "Headgate"
  pinfo.cols.info = ("poll report of port %d"):format(buf(0, 2):bitfield(7, 9))
  if buf:len() > size then data:call(buf(size):tvb(), pinfo, tree) end
  return buf:len()
end

-- Between switch and controller ---------------------------------------------------------

local POLL = 1
local ethernet = Dissector.get("eth_withoutfcs")

-- direction makes the dissector of packets to or from the controller.
local function direction(abbr, title, port_name, what, names)
  local p = Proto(abbr, title)
  local f = {
    port = ProtoField.uint16(abbr .. ".port", port_name, base.DEC, nil, 0xff80),
    queue = ProtoField.uint16(abbr .. ".queue", "Queue", base.DEC, nil, 0x0070),
    what = ProtoField.uint16(abbr .. "." .. what, what == "mode" and "Mode" or "Reason", base.DEC, names, 0x000f),
  }
  register(p, f)
  function p.dissector(buf, pinfo, tree)
    if buf:len() < 2 then return 0 end
    local t = tree:add(p, buf(0, 2))
    t:add(f.port, buf(0, 2))
    t:add(f.queue, buf(0, 2))
    t:add(f.what, buf(0, 2))
    if buf:len() == 2 then return 2 end
    local rest = buf(2):tvb()
    if what == "reason" and buf(0, 2):bitfield(12, 4) == POLL then
      report.dissector(rest, pinfo, tree)
    else
      ethernet:call(rest, pinfo, tree)
    end
    return buf:len()
  end
  return p
end

local packet_in = direction("headgate_in", "Headgate packet-in", "Ingress port", "reason", { [0] = "punted", [1] = "poll report" })
local packet_out = direction("headgate_out", "Headgate packet-out", "Egress port", "mode",
  { [0] = "out of the port", [1] = "through the pipeline", [2] = "poll", [3] = "repeat PAUSE", [4] = "forget the accounts" })

local encapsulations = DissectorTable.get("wtap_encap")
encapsulations:add(wtap.USER14, packet_in)
encapsulations:add(wtap.USER15, packet_out)
