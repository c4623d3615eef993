{{- define "coordinator.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "coordinator.image" -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}

{{- define "coordinator.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* Of one component: (dict "root" $ "component" "job"). */}}
{{- define "coordinator.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* Whether the checkpoint is in a volume, as a string that is empty or not. */}}
{{- define "coordinator.hasVolume" -}}
{{- if not .Values.checkpoint.location -}}yes{{- end -}}
{{- end -}}

{{- define "coordinator.claim" -}}
{{- .Values.checkpoint.volume.existingClaim | default (printf "%s-checkpoint" (include "coordinator.fullname" .)) -}}
{{- end -}}

{{- define "coordinator.hasExecutors" -}}
{{- if gt (int .Values.job.executors.instances) 0 -}}yes{{- end -}}
{{- end -}}

{{- define "coordinator.isDeployment" -}}
{{- if eq .Values.job.kind "Deployment" -}}yes{{- end -}}
{{- end -}}
