{{- define "broker.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "broker.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "broker.nodes" -}}
{{ .Release.Name }}-nodes
{{- end }}

{{- define "broker.members" -}}
{{- $members := list }}
{{- range $i := until (int .Values.cluster.nodes) }}
{{- $node := printf "%s-%d" $.Release.Name $i }}
{{- $members = append $members (printf "%s=%s.%s.%s.svc:7431" $node $node (include "broker.nodes" $) $.Release.Namespace) }}
{{- end }}
{{- join "," $members }}
{{- end }}

{{- define "broker.secret" -}}
{{ .Values.existingSecret | default .Release.Name }}
{{- end }}
