{{/* What the pods of all components have. */}}

{{/* A text that may be empty, indented after a new line: (list 6 "text"). */}}
{{- define "coordinator.block" -}}
{{- with index . 1 | trim -}}
{{- . | nindent (int (index $ 0)) -}}
{{- end -}}
{{- end -}}

{{- define "coordinator.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "coordinator.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "coordinator.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end -}}

{{- define "coordinator.probe" -}}
httpGet:
  path: {{ .path }}
  port: metrics
timeoutSeconds: 5
{{- end -}}

{{/* Where pods run: (dict "root" $ "component" "job" "values" .Values.job "required" false). */}}
{{- define "coordinator.placement" -}}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- if .values.affinity }}
affinity:
  {{- toYaml .values.affinity | nindent 2 }}
{{- else if .required }}
affinity:
  podAntiAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels:
            {{- include "coordinator.selector" . | nindent 12 }}
{{- else }}
affinity:
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- include "coordinator.selector" . | nindent 14 }}
{{- end }}
{{- end -}}

{{/* Options as TOML: quoted keys, since a key may begin another one. */}}
{{- define "coordinator.toml" -}}
{{- range $key, $value := . }}
{{ $key | quote }} = {{ $value | toJson }}
{{- end }}
{{- end -}}

{{/* Variables with options from Secrets: (dict "prefix" "GROUP_COORDINATOR_" "options" list). */}}
{{- define "coordinator.secretOptions" -}}
{{- range .options }}
- name: {{ $.prefix }}{{ regexReplaceAll "[-.]" .option "_" | upper }}
  valueFrom:
    secretKeyRef:
      name: {{ .secret }}
      key: {{ .key }}
{{- end }}
{{- end -}}

{{/* Volumes with the files of Secrets that job and gateway share. Mode 288 is 0440, which readers of YAML 1.2 take for 440. */}}
{{- define "coordinator.secretVolumes" -}}
{{- with .Values.kafka.filesSecret }}
- name: kafka-files
  secret:
    secretName: {{ . }}
    defaultMode: 288
{{- end }}
{{- with .Values.identityKeySecret }}
- name: identity-key
  secret:
    secretName: {{ . }}
    defaultMode: 288
{{- end }}
{{- end -}}

{{- define "coordinator.secretMounts" -}}
{{- if .Values.kafka.filesSecret }}
- name: kafka-files
  mountPath: /etc/group-coordinator/kafka
  readOnly: true
{{- end }}
{{- if .Values.identityKeySecret }}
- name: identity-key
  mountPath: /etc/group-coordinator/identity
  readOnly: true
{{- end }}
{{- end -}}

{{- define "coordinator.tmpVolume" -}}
- name: tmp
  emptyDir:
    sizeLimit: {{ .Values.tmp.sizeLimit }}
{{- end -}}
