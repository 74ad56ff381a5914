-- SPDX-License-Identifier: MIT
--
-- Decides a batch of independent requests, in order, by the model of src/model/bucket.h, with the
-- server's clock. One text for every configuration: limits come with the call.
--
-- KEYS: the bucket of each claim of each request, in order. ARGV[1]: for each request, packed,
--   operation, number of claims, cost, taken at; then for each claim rate, burst, delay, seconds to
--   live at least. ARGV[2]: "struct" or "json".
--
-- Reply: the time (a packed double), then for each request what became of it (1 done, 0 rejected, -i
-- its claim i can't be read) and the state of each claim as it was before (nil for none).
--
-- A later request sees what an earlier one took. A bucket that seems to have no state may be of
-- another type, which MGET doesn't tell: that is looked up before the first write of its request.

if redis.replicate_commands then pcall(redis.replicate_commands) end

local REQUEST, PEEK, REFUND, CHARGE, RESET, GIVE_BACK = 0, 1, 2, 3, 4, 5
local TICK, FULL, LONGEST = 2e-6, 1e15, 1e10

local call, pack, unpacked = redis.call, struct.pack, struct.unpack
local ceil, format = math.ceil, string.format
local json = ARGV[2] == 'json'
local args = ARGV[1]

local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000

local read_json

if json then
  -- True for a JSON number: cjson takes more than that.
  local function is_number(text)
    local whole, rest = text:match('^%-?(%d+)(.*)$')
    if not whole or #text > 64 or (#whole > 1 and whole:byte() == 48) then return false end
    rest = rest:gsub('^%.%d+', '')
    return rest == '' or rest:match('^[eE][+-]?%d+$') ~= nil
  end

  -- True when what stands outside of strings is JSON, as far as cjson wouldn't notice.
  local function is_strict(text)
    local plain = text:gsub('\\.', '')
    for inside in plain:gmatch('"([^"]*)"') do
      if inside:find('[%z\1-\31]') then return false end
    end
    local bare = plain:gsub('"[^"]*"', '')
    bare = bare:gsub('true', ''):gsub('false', ''):gsub('null', '')
    if bare:find('[^%s{}%[%],:%d%.eE+-]') then return false end
    for number in bare:gmatch('[%d%.eE+-]+') do
      if not is_number(number) then return false end
    end
    return true
  end

  function read_json(text)
    local good, state = pcall(cjson.decode, text)
    if not good or type(state) ~= 'table' or not is_strict(text) then return nil end
    if type(state.t) ~= 'number' or type(state.v) ~= 'number' then return nil end
    return state.t, state.v
  end
end

-- Timestamp and value, or nil for what is no state. Of an infinity or a NaN, x - x isn't 0.
local function read(text)
  local t, v
  if json then
    t, v = read_json(text)
    if not t then return nil end
  else
    if #text ~= 16 then return nil end
    t, v = unpacked('<dd', text)
  end
  if t - t ~= 0 or v - v ~= 0 then return nil end
  return t, v
end

local function write(key, t, v, rate, expiry)
  local text = json and format('{"t":%.17g,"v":%.17g}', t, v) or pack('<dd', t, v)
  local live = ceil(v / rate) + 1
  if live < expiry then live = expiry end
  if live > LONGEST then live = LONGEST end
  call('SETEX', key, format('%.0f', live), text)
  return text
end

local KEYS = KEYS
local states = call('MGET', unpack(KEYS))
local reply, filled = {pack('<d', now)}, 1
local later = {} -- what this call itself has written, by key; false for what it has removed
local ts, levels, rates, expiries = {}, {}, {}, {}
local at, claim, size = 1, 0, #args

while at <= size do
  local operation, len, cost, taken_at
  operation, len, cost, taken_at, at = unpacked('<BBdd', args, at)
  local outcome, place = 1, filled + 1
  filled = place + len

  for i = 1, len do
    local rate, burst, delay, expiry
    rate, burst, delay, expiry, at = unpacked('<dddd', args, at)
    local text = later[KEYS[claim + i]]
    if text == nil then text = states[claim + i] end
    reply[place + i] = text
    local t, level = nil, 0
    if text then
      local v
      t, v = read(text)
      if t then
        local elapsed = now - t
        if elapsed < 0 then elapsed = 0 end
        level = v - elapsed * rate
        if level < 0 then level = 0 end
      elseif outcome >= 0 and operation ~= RESET then
        outcome = -i
      end
    end
    if operation <= PEEK and outcome == 1 and burst + 1 - (level + cost) < -delay - rate * TICK then
      outcome = 0
    end
    ts[i], levels[i], rates[i], expiries[i] = t or false, level, rate, expiry
  end

  if outcome == 1 then
    for i = 1, len do
      local key = KEYS[claim + i]
      if not reply[place + i] and later[key] == nil and call('EXISTS', key) == 1 then
        outcome = -i
        break
      end
    end
  end

  if outcome == 1 and operation ~= PEEK then
    for i = 1, len do
      local key, t, level = KEYS[claim + i], ts[i], levels[i]
      local stamp = (t and t > now) and t or now
      local value
      if operation == REQUEST then
        value = level + cost
      elseif operation == CHARGE then
        value = level + cost
        if value > FULL then value = FULL end
      elseif operation ~= RESET and t then
        local back = cost
        if operation == GIVE_BACK then
          local elapsed = stamp - taken_at
          if elapsed < 0 then elapsed = 0 end
          back = cost - elapsed * rates[i]
          if back < 0 then back = 0 end
        end
        value = level - back
        if value < 0 then value = 0 end
      end
      if value then
        later[key] = write(key, stamp, value, rates[i], expiries[i])
      elseif operation == RESET then
        call('DEL', key)
        later[key] = false
      end
    end
  end

  reply[place] = outcome
  claim = claim + len
end

return reply
