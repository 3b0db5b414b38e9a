-- SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
-- slurmctld loads this file (JobSubmitPlugins=lua), and Slurm is GPL-2.0-or-later: so you may have it under that licence.
--
-- Lets jobs that share GPUs wait for horus-slurm to choose one; jobs of whole GPUs are Slurm's alone. Lets requests for a type of GPU from before "horus-slurm migrate" go on working.
-- Where you have a job_submit.lua of your own, call horus_submit(desc, part_list) from it. Edit these:

local partitions = { gpu = true } -- whose jobs horus-slurm places, where they share
local wait_s = 300                -- how long a job waits at most once horus-slurm is silent; its --wait
local alive_file = "/run/horus-slurm/alive" -- its --alive-file
local shards = 8                  -- of a GPU, for jobs that name no GPU: alone on one until horus-slurm finds better
local memory_mib = 0               -- host memory of a job that shares a GPU and states none; 0: what Slurm says, which without
                                  -- DefMemPerCPU or DefMemPerNode is all of a node: then nobody shares it
local migrated = {}               -- types of GPU from before, which are features of nodes now: { a100 = true }

-- alive says whether horus-slurm gave a sign of life lately. Jobs that come while it does not are Slurm's.
local function alive()
  local file = io.open(alive_file, "r")
  if not file then
    return false
  end
  local till = file:read("*n")
  file:close()
  return till ~= nil and till >= os.time()
end

-- How a request begins: Slurm 24.11, which knows this error, refuses what 22.05 asks for, and 22.05 passes over what 24.11 does.
local gres = slurm.ESLURM_INVALID_TRES and "gres/" or "gres:"

local places = { "tres_per_node", "tres_per_job", "tres_per_task", "tres_per_socket" }

-- old_types turns "gpu:a100:2" into "gpu:2" on nodes with the feature a100.
local function old_types(desc)
  for _, place in ipairs(places) do
    local request = desc[place]
    local model = request and request:match("gpu:([^:=,]+)[:=]%d+") or request and request:match("gpu:(%a[^:,]*)$")
    if model and migrated[model] then
      local rest = request:gsub("gpu:" .. model:gsub("%p", "%%%0"), "gpu")
      if rest:find("[:=]" .. model:gsub("%p", "%%%0")) or (desc.features and desc.features:find("[|%[]")) then
        slurm.log_user("gpu:" .. model .. ": ask for gpu:N and --constraint=" .. model .. " (each GPU has a type of its own here)")
        return slurm.ERROR
      end
      desc[place] = rest
      desc.features = desc.features and desc.features ~= "" and (desc.features .. "&" .. model) or model
    end
  end
  return slurm.SUCCESS
end

-- partition_of a job: what it names, else the default, which Slurm has not filled in yet.
local function partition_of(desc, part_list)
  if desc.partition then
    return desc.partition
  end
  for name, part in pairs(part_list) do
    if part.flag_default == 1 then
      return name
    end
  end
  return ""
end

-- listen writes what the options of horus-slurm's SPANK plugin said, such as --horus-model, into the comment: before words
-- that stand there, and before a comment that is none of ours.
local function listen(desc)
  for _, one in pairs(desc.spank_job_env or {}) do
    local words = one:match("^HORUS_WORDS=(.*)$")
    if words then
      local own = desc.comment or ""
      local more = own:match("^horus:(.*)$")
      if more then
        own = (words ~= "" and more:match("^%s*[^%s;]") and "," or "") .. more
      elseif own ~= "" then
        own = "; " .. own
      end
      desc.comment = "horus:" .. words .. own
    end
  end
end

-- fill_memory states the host memory of a job that shares a GPU and states none.
local function fill_memory(desc)
  local states = desc.min_mem_per_node or desc.min_mem_per_cpu or desc.mem_per_tres and desc.mem_per_tres ~= ""
  if memory_mib > 0 and not states and desc.tres_per_node and desc.tres_per_node:find("shard") then
    desc.min_mem_per_node = memory_mib
    slurm.log_user("horus-slurm: --mem=" .. memory_mib .. "M, as a job that shares a GPU states its host memory")
  end
end

-- asks_again says whether this is srun, whose step asks for what the command line says, and would be refused once horus-slurm has
-- named a GPU: 22.05 refuses more shards than the job got, 24.11 every request without a type.
local function asks_again(desc, asks)
  local srun = false
  for _, one in pairs(desc.spank_job_env or {}) do
    srun = srun or one == "HORUS_SRUN=1"
  end
  if gres == "gres/" then
    return srun and asks
  end
  srun = srun or desc.script == nil and (desc.argc or 0) > 0 -- from 24.11 on salloc has arguments too
  local count = desc.tres_per_node and desc.tres_per_node:match("shard:(%d+)$")
  return srun and count ~= nil and tonumber(count) > 1
end

function horus_submit(desc, part_list)
  listen(desc)
  local answer = old_types(desc)
  if answer ~= slurm.SUCCESS then
    return answer
  end
  if not desc.comment or desc.comment:sub(1, 6) ~= "horus:" then
    return slurm.SUCCESS
  end
  local ours = false
  for name in partition_of(desc, part_list):gmatch("[^,]+") do
    ours = ours or partitions[name] or false
  end
  local asks, whole = false, false
  for _, place in ipairs(places) do
    asks = asks or (desc[place] ~= nil and desc[place] ~= "")
    whole = whole or (desc[place] ~= nil and desc[place]:find("gpu") ~= nil)
  end
  if ours and whole then
    desc.admin_comment = "horus:left; it asks for whole GPUs, which Slurm places"
    return slurm.SUCCESS
  end
  if ours and asks_again(desc, asks) then
    local why = "srun asks for its GPUs a second time, for its step: expected no --gres and no --gpus, or salloc"
    slurm.log_user("horus-slurm leaves this to Slurm, as " .. why)
    desc.admin_comment = "horus:left; " .. why
    return slurm.SUCCESS
  end
  if ours and not asks then
    desc.tres_per_node = gres .. "shard:" .. shards
  end
  if ours then
    fill_memory(desc)
  end
  local now = desc.immediate == 1 -- srun --immediate
  if not ours or not alive() or desc.priority == 0 or now then -- priority 0: --hold
    return slurm.SUCCESS
  end
  local from = math.max(os.time(), desc.begin_time or 0)
  desc.begin_time = from + wait_s
  desc.admin_comment = "horus:waits from=" .. from .. "; was submitted"
  return slurm.SUCCESS
end

function slurm_job_submit(desc, part_list, uid)
  return horus_submit(desc, part_list)
end

function slurm_job_modify(desc, job, part_list, uid)
  return slurm.SUCCESS
end

return slurm.SUCCESS
