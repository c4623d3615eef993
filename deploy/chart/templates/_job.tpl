{{/* The pods of the job: the driver of each kind, and the executors. */}}

{{/* The job's options that the chart knows, and the user's, which win. As YAML. */}}
{{- define "coordinator.jobOptions" -}}
{{- $options := dict
  "bootstrap-servers" .Values.kafka.bootstrapServers
  "topic-prefix" .Values.kafka.topicPrefix
  "checkpoint" (.Values.checkpoint.location | default "/checkpoint/coordinator")
  "profile" .Values.job.profile
  "driver-memory" .Values.job.driverMemory
  "standby" true
  "metrics-port" 9404
  "metrics-host" "0.0.0.0"
-}}
{{- if .Values.identityKeySecret -}}
{{- $_ := set $options "identity-key-file" "/etc/group-coordinator/identity/identity.key" -}}
{{- end -}}
{{- with .Values.checkpoint.s3 -}}
{{- if .endpoint -}}{{- $_ := set $options "spark.hadoop.fs.s3a.endpoint" .endpoint -}}{{- end -}}
{{- if .region -}}{{- $_ := set $options "spark.hadoop.fs.s3a.endpoint.region" .region -}}{{- end -}}
{{- if .pathStyleAccess -}}{{- $_ := set $options "spark.hadoop.fs.s3a.path.style.access" "true" -}}{{- end -}}
{{- end -}}
{{- if and (include "coordinator.isDeployment" .) (include "coordinator.hasExecutors" .) -}}
{{- $_ := set $options "master" "k8s://https://kubernetes.default.svc" -}}
{{- $options = merge $options (include "coordinator.clientModeSettings" . | fromYaml) -}}
{{- end -}}
{{- mergeOverwrite $options .Values.job.options | toYaml -}}
{{- end -}}

{{/* The job's file of options. Spark has started the driver of a SparkApplication by then: its settings are not there. */}}
{{- define "coordinator.jobFile" -}}
{{- $options := include "coordinator.jobOptions" . | fromYaml -}}
{{- if not (include "coordinator.isDeployment" .) -}}
{{- $options = omit $options "master" "driver-memory" -}}
{{- range $key, $_ := $options -}}
{{- if hasPrefix "spark." $key -}}{{- $options = omit $options $key -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- include "coordinator.toml" $options | trim -}}
{{- end -}}

{{/* Those of the job's options that are Spark's, as the settings of a SparkApplication. */}}
{{- define "coordinator.sparkSettings" -}}
{{- range $key, $value := include "coordinator.jobOptions" . | fromYaml }}
{{- if hasPrefix "spark." $key }}
{{ $key }}: {{ $value | toString | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{/* What spark-submit would say, for a driver that starts its executors from its own pod. */}}
{{- define "coordinator.clientModeSettings" -}}
{{- range $key, $value := dict
  "executor.instances" (.Values.job.executors.instances | toString)
  "executor.cores" (.Values.job.executors.cores | toString)
  "executor.memory" .Values.job.executors.memory
  "executor.memoryOverhead" .Values.job.executors.memoryOverhead
  "driver.port" "7078"
  "blockManager.port" "7079"
  "kubernetes.namespace" .Release.Namespace
  "kubernetes.container.image" (include "coordinator.image" .)
  "kubernetes.container.image.pullPolicy" .Values.image.pullPolicy
  "kubernetes.authenticate.executor.serviceAccountName" (include "coordinator.fullname" .)
  "kubernetes.executor.podTemplateFile" "/etc/group-coordinator/job/executor.yaml"
}}
spark.{{ $key }}: {{ $value | quote }}
{{- end }}
{{- end -}}

{{/* The image has the executors' packages: with the variable, the job need not send them. */}}
{{- define "coordinator.jobEnvironment" -}}
{{- if include "coordinator.hasExecutors" . }}
- name: PYSPARK_PYTHON
  value: /opt/group-coordinator/bin/python3
{{- end }}
{{- include "coordinator.storeCredentials" . }}
{{- include "coordinator.secretOptions" (dict "prefix" "GROUP_COORDINATOR_" "options" .Values.job.secretOptions) }}
{{- end -}}

{{- define "coordinator.storeCredentials" -}}
{{- with .Values.checkpoint.s3.credentialsSecret }}
{{- range $name := list "AWS_ACCESS_KEY_ID" "AWS_SECRET_ACCESS_KEY" }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef:
      name: {{ $.Values.checkpoint.s3.credentialsSecret }}
      key: {{ $name }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "coordinator.checkpointVolume" -}}
{{- if include "coordinator.hasVolume" . }}
- name: checkpoint
  persistentVolumeClaim:
    claimName: {{ include "coordinator.claim" . }}
{{- end }}
{{- end -}}

{{- define "coordinator.checkpointMount" -}}
{{- if include "coordinator.hasVolume" . }}
- name: checkpoint
  mountPath: /checkpoint
{{- end }}
{{- end -}}

{{/* The driver's container without its command: (dict "root" $ "name" "job"). Standbys are live and not ready, and an
     upgrade has to pass them, so the probe of readiness asks whether the job is live. */}}
{{- define "coordinator.driverContainer" -}}
name: {{ .name }}
{{- with .root }}
image: {{ include "coordinator.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  {{- include "coordinator.containerSecurity" . | nindent 2 }}
workingDir: /tmp
ports:
  - name: metrics
    containerPort: 9404
startupProbe:
  {{- include "coordinator.probe" (dict "path" "/health/live") | nindent 2 }}
  periodSeconds: 5
  failureThreshold: 60
livenessProbe:
  {{- include "coordinator.probe" (dict "path" "/health/live") | nindent 2 }}
  periodSeconds: 15
readinessProbe:
  {{- include "coordinator.probe" (dict "path" "/health/live") | nindent 2 }}
  periodSeconds: 5
volumeMounts:
  - name: tmp
    mountPath: /tmp
  - name: options
    mountPath: /etc/group-coordinator/job
    readOnly: true
  {{- include "coordinator.block" (list 2 (include "coordinator.checkpointMount" .)) }}
  {{- include "coordinator.block" (list 2 (include "coordinator.secretMounts" .)) }}
{{- end }}
{{- end -}}

{{/* The driver's pod without its containers. */}}
{{- define "coordinator.driverPod" -}}
serviceAccountName: {{ include "coordinator.fullname" . }}
automountServiceAccountToken: {{ ne (include "coordinator.hasExecutors" .) "" }}
{{- include "coordinator.block" (list 0 (include "coordinator.pullSecrets" .)) }}
securityContext:
  {{- include "coordinator.podSecurity" . | nindent 2 }}
# The job finishes the batch in flight, and ends within 15 s.
terminationGracePeriodSeconds: 30
{{- include "coordinator.block" (list 0 (include "coordinator.placement" (dict "root" . "component" "job" "values" .Values.job "required" false))) }}
volumes:
  {{- include "coordinator.tmpVolume" . | nindent 2 }}
  - name: options
    configMap:
      name: {{ include "coordinator.fullname" . }}-job
  {{- include "coordinator.block" (list 2 (include "coordinator.checkpointVolume" .)) }}
  {{- include "coordinator.block" (list 2 (include "coordinator.secretVolumes" .)) }}
{{- end -}}

{{- define "coordinator.driverMetadata" -}}
labels:
  {{- include "coordinator.labels" . | nindent 2 }}
  app.kubernetes.io/component: job
annotations:
  checksum/options: {{ include "coordinator.jobFile" . | sha256sum }}
  {{- with .Values.job.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* The executors' pods. Spark fetches files into an executor's working folder. */}}
{{- define "coordinator.executorTemplate" -}}
metadata:
  labels:
    {{- include "coordinator.labels" . | nindent 4 }}
    app.kubernetes.io/component: executor
spec:
  automountServiceAccountToken: false
  {{- include "coordinator.block" (list 2 (include "coordinator.pullSecrets" .)) }}
  securityContext:
    {{- include "coordinator.podSecurity" . | nindent 4 }}
  {{- include "coordinator.block" (list 2 (include "coordinator.placement" (dict "root" . "component" "executor" "values" .Values.job "required" false))) }}
  containers:
    - name: executor
      image: {{ include "coordinator.image" . }}
      securityContext:
        {{- include "coordinator.containerSecurity" . | nindent 8 }}
      workingDir: /tmp
      env:
        - name: PYSPARK_PYTHON
          value: /opt/group-coordinator/bin/python3
        {{- include "coordinator.block" (list 8 (include "coordinator.storeCredentials" .)) }}
      volumeMounts:
        - name: tmp
          mountPath: /tmp
        {{- include "coordinator.block" (list 8 (include "coordinator.checkpointMount" .)) }}
        {{- include "coordinator.block" (list 8 (include "coordinator.secretMounts" .)) }}
  volumes:
    {{- include "coordinator.tmpVolume" . | nindent 4 }}
    {{- include "coordinator.block" (list 4 (include "coordinator.checkpointVolume" .)) }}
    {{- include "coordinator.block" (list 4 (include "coordinator.secretVolumes" .)) }}
{{- end -}}
