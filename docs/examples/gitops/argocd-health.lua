-- Health of a TablestoreTunnel for Argo CD, as resource.customizations.health.ots-tunnel.dev_TablestoreTunnel of argocd-cm.
-- The first case that applies decides.

local function condition(kind)
  for _, found in ipairs(obj.status.conditions) do
    if found.type == kind then
      return found
    end
  end
  return {status = "Unknown", reason = "NotObserved", message = ""}
end

local function health(status, found)
  local message = found.reason
  if found.message ~= nil and found.message ~= "" then
    message = message .. ": " .. found.message
  end
  return {status = status, message = message}
end

if obj.metadata.deletionTimestamp ~= nil then
  return {status = "Progressing", message = "Deleting: the deletionPolicy is being carried out"}
end
if obj.status == nil or obj.status.conditions == nil then
  return {status = "Progressing", message = "the operator has not looked at the object yet"}
end
local observed = obj.status.observedGeneration
if observed ~= nil and obj.metadata.generation ~= nil and observed < obj.metadata.generation then
  return {status = "Progressing", message = "the operator has not seen the last edit yet"}
end

local ready, stalled, degraded = condition("Ready"), condition("Stalled"), condition("Degraded")
if stalled.status == "True" then -- it waits for a person
  return health("Degraded", stalled)
end
if condition("Completed").status == "True" then
  return health("Healthy", condition("Completed"))
end
if condition("Suspended").status == "True" then
  return health("Suspended", condition("Suspended"))
end
if ready.status == "True" then
  return health("Healthy", ready)
end
if obj.spec.suspend then -- workers are still draining
  return health("Progressing", ready)
end
if degraded.status == "True" then -- it is retried, or works, but not as promised
  return health("Degraded", degraded)
end
if ready.reason == "NoWorkersWanted" then
  return health("Suspended", ready)
end
if ready.status == "Unknown" and ready.reason ~= "Unknown" and ready.reason ~= "NotObserved" then
  return health("Unknown", ready) -- it cannot be observed
end
return health("Progressing", ready)
