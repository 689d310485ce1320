# Strips Kubernetes' own descriptions from a CRD: those of everything below the fields that are as in a Pod or a NetworkPolicy.
{ match($0, /^ */); indent = RLENGTH }
skipping && (indent > skipped || /^$/) { next }
{ skipping = 0 }
inside && indent <= field { inside = 0 }
inside && indent > field + 2 && /^ *description:/ { skipping = 1; skipped = indent; next }
!inside && /^ *(affinity|tolerations|topologySpreadConstraints|ingressFrom|metricsFrom):$/ { inside = 1; field = indent }
{ print }
