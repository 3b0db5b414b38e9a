{{- define "horus.labels" -}}
app.kubernetes.io/name: horus
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "horus.name" -}}{{ .Release.Name }}-scheduler{{- end }}
