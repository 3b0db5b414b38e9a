{{- define "horus.labels" -}}
app.kubernetes.io/name: horus
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "horus.name" -}}{{ .Release.Name }}-scheduler{{- end }}
{{/* Not those of the scheduler, whose selectors would take these pods for its own. */}}
{{- define "horus.advise.labels" -}}
app.kubernetes.io/name: horus-advise
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "horus.advise.name" -}}{{ .Release.Name }}-advise{{- end }}
{{- define "horus.image" -}}
"{{ .Values.image.repository }}:{{ .Values.image.tag | default (printf "%s-k8s%s" .Chart.AppVersion (include "horus.minor" .)) }}"
{{- end }}
{{/* The Kubernetes that the image is built from. */}}
{{- define "horus.minor" -}}{{ ternary "1.36" "1.37" (semverCompare "<1.37.0-0" .Capabilities.KubeVersion.Version) }}{{- end }}
{{/* Milliseconds of a duration such as 15s. */}}
{{- define "horus.ms" -}}
{{ mul (regexFind "^[0-9]+" . | int64) (get (dict "ms" 1 "s" 1000 "m" 60000 "h" 3600000) (regexFind "[a-z]+$" .)) }}
{{- end }}
{{- define "horus.podGroups" -}}
{{- $alpha := eq (include "horus.minor" .) "1.36" -}}
{{- $api := printf "scheduling.k8s.io/%s/PodGroup" (ternary "v1alpha2" "v1beta1" $alpha) -}}
{{- if or (eq .Values.podGroups "always") (and (eq .Values.podGroups "auto") (.Capabilities.APIVersions.Has $api)) -}}
, "--feature-gates=GenericWorkload=true{{ if $alpha }},GangScheduling=true{{ end }}"
{{- end -}}
{{- end }}

{{/* What the values say of all pods: where they go, and by which secrets their image comes. */}}
{{- define "horus.scheduling" -}}
{{- range $field := list "imagePullSecrets" "nodeSelector" "tolerations" "affinity" "priorityClassName" }}
{{- with get $.Values $field }}
{{ $field }}: {{ toJson . }}
{{- end }}
{{- end }}
{{- end }}
