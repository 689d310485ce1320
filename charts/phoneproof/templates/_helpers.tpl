{{/* The start of every name. At most 40 characters, so that what is appended fits. */}}
{{- define "phoneproof.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
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

{{- define "phoneproof.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{- define "phoneproof.selectorLabels" -}}
app.kubernetes.io/name: phoneproof
app.kubernetes.io/component: operator
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* Labels of everything; those of the operator's own objects have the component too. */}}
{{- define "phoneproof.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/name: phoneproof
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: phoneproof
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "phoneproof.operatorLabels" -}}
{{ include "phoneproof.labels" . }}
app.kubernetes.io/component: operator
{{- end -}}

{{/* The rules of a role that config/ holds; the file is a copy that "make manifests" keeps equal. */}}
{{- define "phoneproof.rules" -}}
{{- toYaml (.Files.Get (printf "files/rbac/%s.yaml" .role) | fromYaml).rules -}}
{{- end -}}

{{/* The operator's command line. An empty list of what is allowed is said too, because the flag has a default. */}}
{{- define "phoneproof.operatorArgs" -}}
- operator
- --server-image={{ include "phoneproof.image" . }}
- --server-image-pull-policy={{ .Values.image.pullPolicy }}
{{- include "phoneproof.flags" (dict "flag" "server-image-pull-secret" "values" .Values.image.pullSecrets) }}
{{- include "phoneproof.flags" (dict "flag" "watch-namespace" "values" .Values.watchNamespaces) }}
{{- include "phoneproof.flags" (dict "flag" "whatsapp-url" "values" (compact (list .Values.admin.whatsappURL))) }}
{{- include "phoneproof.flags" (dict "flag" "telegram-url" "values" (compact (list .Values.admin.telegramURL))) }}
{{- include "phoneproof.flags" (dict "flag" "simulator-url" "values" (compact (list .Values.admin.simulatorURL))) }}
{{- include "phoneproof.flags" (dict "flag" "webhook-allow" "values" .Values.admin.webhook.allow) }}
{{- include "phoneproof.flags" (dict "flag" "webhook-deny" "values" .Values.admin.webhook.deny) }}
{{- include "phoneproof.flags" (dict "flag" "allow-annotation" "values" (default (list "") .Values.admin.allowAnnotations)) }}
{{- include "phoneproof.flags" (dict "flag" "allow-priority-class" "values" .Values.admin.allowPriorityClasses) }}
{{- include "phoneproof.flags" (dict "flag" "allow-toleration" "values" (default (list "") .Values.admin.allowTolerations)) }}
{{- include "phoneproof.flags" (dict "flag" "allow-service-type" "values" .Values.admin.allowServiceTypes) }}
- --max-unready-rollouts={{ .Values.operator.maxUnreadyRollouts }}
- --log-format={{ .Values.operator.log.format }}
- --log-level={{ .Values.operator.log.level }}
{{- range .Values.operator.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end -}}

{{- define "phoneproof.flags" -}}
{{- $flag := .flag -}}
{{- range .values }}
- {{ printf "--%s=%s" $flag . | quote }}
{{- end -}}
{{- end -}}
