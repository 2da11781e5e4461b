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

{{- define "broker.ports" -}}
{{- $ports := dict "gearman" 4730 "faktory" 7419 "http" 7420 "workq" 9922 }}
{{- $optional := dict "qless" 6379 "conveyor" 6380 "sqs" 9324 "beanstalk" 11300 }}
{{- range $protocol, $on := .Values.protocols }}
{{- $port := get $optional $protocol | required (printf "protocols.%s is not one of %s" $protocol (keys $optional | sortAlpha | join ", ")) }}
{{- if $on }}{{ $_ := set $ports $protocol $port }}{{ end }}
{{- end }}
{{- toJson $ports }}
{{- end }}
