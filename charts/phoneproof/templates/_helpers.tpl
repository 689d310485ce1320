{{- define "phoneproof.name" -}}
{{- default .Chart.Name .Values.nameOverride -}}
{{- end -}}

{{/* The start of every name. At most 40 characters, so that what is appended fits. */}}
{{- define "phoneproof.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "phoneproof.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "phoneproof.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "phoneproof.operatorName" -}}
{{ include "phoneproof.fullname" . }}-operator
{{- end -}}

{{- define "phoneproof.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{ default (include "phoneproof.operatorName" .) .Values.serviceAccount.name }}
{{- else -}}
{{ required "serviceAccount.name is required where serviceAccount.create is false" .Values.serviceAccount.name }}
{{- end -}}
{{- end -}}

{{/* A release writes the digest of its image into Chart.yaml. It is used only with the tag of the chart: image.tag or image.digest replaces both. */}}
{{- define "phoneproof.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else if .Values.image.tag -}}
{{ .Values.image.repository }}:{{ .Values.image.tag }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Chart.AppVersion }}{{ with index .Chart.Annotations "phoneproof.dev/image-digest" }}@{{ . }}{{ end }}
{{- end -}}
{{- end -}}

{{/* What selects the operator's pods. No value may change these labels elsewhere. */}}
{{- define "phoneproof.selectorLabels" -}}
app.kubernetes.io/name: {{ include "phoneproof.name" . }}
app.kubernetes.io/component: operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/*
Labels of an object. The argument is a list: the root, the component or "", and any number of maps with more labels. Later
maps win over earlier ones, and the labels that select pods win over all of them.
*/}}
{{- define "phoneproof.labels" -}}
{{- $root := index . 0 -}}
{{- $labels := dict
  "helm.sh/chart" (printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-")
  "app.kubernetes.io/version" $root.Chart.AppVersion
  "app.kubernetes.io/managed-by" $root.Release.Service
  "app.kubernetes.io/part-of" "phoneproof"
-}}
{{- range concat (list $root.Values.commonLabels) (slice . 2) -}}
{{- $labels = mergeOverwrite $labels (deepCopy .) -}}
{{- end -}}
{{- $_ := set $labels "app.kubernetes.io/name" (include "phoneproof.name" $root) -}}
{{- $_ := set $labels "app.kubernetes.io/instance" $root.Release.Name -}}
{{- with index . 1 -}}
{{- $_ := set $labels "app.kubernetes.io/component" . -}}
{{- end -}}
{{- toYaml $labels -}}
{{- end -}}

{{/* Names of the image pull secrets, as JSON. The value has strings, or objects with a name as in a pod. */}}
{{- define "phoneproof.pullSecrets" -}}
{{- $names := list -}}
{{- range .Values.image.pullSecrets -}}
{{- if kindIs "string" . -}}
{{- $names = append $names . -}}
{{- else -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- end -}}
{{- toJson $names -}}
{{- end -}}

{{/* The rules of a role; config/rbac refers to the same file. */}}
{{- define "phoneproof.rules" -}}
{{- toYaml (.Files.Get (printf "files/rbac/%s.yaml" .role) | fromYaml).rules -}}
{{- end -}}

{{/* The operator's command line. An empty list of annotations is passed too, because the flag has a default. */}}
{{- define "phoneproof.operatorArgs" -}}
- operator
- --server-image={{ include "phoneproof.image" . }}
- --server-image-pull-policy={{ .Values.image.pullPolicy }}
{{- include "phoneproof.flags" (dict "flag" "server-image-pull-secret" "values" (include "phoneproof.pullSecrets" . | fromJsonArray)) }}
{{- include "phoneproof.flags" (dict "flag" "watch-namespace" "values" .Values.watchNamespaces) }}
{{- include "phoneproof.flags" (dict "flag" "whatsapp-url" "values" (compact (list .Values.admin.whatsappURL))) }}
{{- include "phoneproof.flags" (dict "flag" "telegram-url" "values" (compact (list .Values.admin.telegramURL))) }}
{{- include "phoneproof.flags" (dict "flag" "telegram-gateway-url" "values" (compact (list .Values.admin.telegramGatewayURL))) }}
{{- include "phoneproof.flags" (dict "flag" "simulator-url" "values" (compact (list .Values.admin.simulatorURL))) }}
{{- include "phoneproof.flags" (dict "flag" "webhook-allow" "values" .Values.admin.webhook.allow) }}
{{- include "phoneproof.flags" (dict "flag" "webhook-deny" "values" .Values.admin.webhook.deny) }}
{{- include "phoneproof.flags" (dict "flag" "allow-annotation" "values" (default (list "") .Values.admin.allowAnnotations)) }}
{{- include "phoneproof.flags" (dict "flag" "allow-priority-class" "values" .Values.admin.allowPriorityClasses) }}
{{- include "phoneproof.flags" (dict "flag" "allow-toleration" "values" .Values.admin.allowTolerations) }}
{{- include "phoneproof.flags" (dict "flag" "allow-service-type" "values" .Values.admin.allowServiceTypes) }}
{{- include "phoneproof.flags" (dict "flag" "grant-account" "values" .Values.admin.grantAccounts) }}
{{- include "phoneproof.flags" (dict "flag" "grant-host" "values" .Values.admin.grantHosts) }}
{{- if not (include "phoneproof.metricsSecure" .) }}
- --metrics-secure=false
- --metrics-bind-address=:{{ include "phoneproof.metricsPort" . }}
{{- end }}
- --max-unready-rollouts={{ .Values.operator.maxUnreadyRollouts }}
- --log-format={{ .Values.operator.log.format }}
- --log-level={{ .Values.operator.log.level }}
{{- range .Values.operator.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end -}}

{{/* Releases for some namespaces may stand beside one another, and these roles are of the cluster. */}}
{{- define "phoneproof.metricsRole" -}}
{{- $name := include "phoneproof.operatorName" . -}}
{{- if .Values.watchNamespaces }}{{ $name = printf "%s-%s" .Release.Namespace $name }}{{ end -}}
{{- printf "%s-metrics" ($name | trunc 200) -}}
{{- end -}}

{{/*
"true" if the metrics are served over HTTPS, else empty. The reviews of tokens that it takes are rights in the whole cluster, which a
release for some namespaces gets only on request.
*/}}
{{- define "phoneproof.metricsSecure" -}}
{{- if kindIs "bool" .Values.metrics.secure -}}
{{- ternary "true" "" .Values.metrics.secure -}}
{{- else if not .Values.watchNamespaces -}}
true
{{- end -}}
{{- end -}}

{{- define "phoneproof.metricsPort" -}}
{{- ternary 8443 8080 (eq (include "phoneproof.metricsSecure" .) "true") -}}
{{- end -}}

{{/* "true" if there is a NetworkPolicy, else empty. Metrics in plain text need one, unless it is refused. */}}
{{- define "phoneproof.networkPolicy" -}}
{{- if kindIs "bool" .Values.networkPolicy.enabled -}}
{{- ternary "true" "" .Values.networkPolicy.enabled -}}
{{- else if not (include "phoneproof.metricsSecure" .) -}}
true
{{- end -}}
{{- end -}}

{{/* Nine tenths of a quantity of memory, in bytes: not all memory is Go's. The same as memoryTarget in controllers/project/render. */}}
{{- define "phoneproof.memoryTarget" -}}
{{- $number := regexFind "^[0-9.]+([eE][+-]?[0-9]+)?" (toString .) -}}
{{- $suffix := trimPrefix $number (toString .) -}}
{{- $units := dict "" 1 "m" 0.001 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 -}}
{{- if or (not $number) (not (hasKey $units $suffix)) -}}
{{- fail (printf "operator.resources.limits.memory is %v: want a number of bytes, or one with k, M, G, T, Ki, Mi, Gi or Ti" .) -}}
{{- end -}}
{{- mulf (float64 $number) (index $units $suffix | float64) 0.9 | floor | int64 -}}
{{- end -}}

{{- define "phoneproof.flags" -}}
{{- $flag := .flag -}}
{{- range .values }}
- {{ printf "--%s=%s" $flag . | quote }}
{{- end -}}
{{- end -}}
