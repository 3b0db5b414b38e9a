{{- define "horus.labels" -}}
app.kubernetes.io/name: horus
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "horus.name" -}}{{ .Release.Name }}-scheduler{{- end }}
{{- define "horus.podGroups" -}}
{{- if or (eq .Values.podGroups "always") (and (eq .Values.podGroups "auto") (.Capabilities.APIVersions.Has "scheduling.k8s.io/v1beta1/PodGroup")) -}}
, --feature-gates=GenericWorkload=true
{{- end -}}
{{- end }}
