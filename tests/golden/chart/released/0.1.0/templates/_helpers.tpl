{{- define "ott.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 53 | trimSuffix "-" -}}
{{- end -}}

{{- define "ott.fullname" -}}
{{- $name := include "ott.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 53 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 53 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "ott.selector" -}}
app.kubernetes.io/name: {{ include "ott.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "ott.labels" -}}
{{ include "ott.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "ott.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "ott.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{/* Reference of an image; the argument is a dict with registry, repository, tag and digest. */}}
{{- define "ott.image" -}}
{{- $name := .repository -}}
{{- if .registry }}{{ $name = printf "%s/%s" .registry .repository }}{{ end -}}
{{- if .digest }}{{ printf "%s@%s" $name .digest }}{{ else }}{{ printf "%s:%s" $name .tag }}{{ end -}}
{{- end -}}

{{- define "ott.operatorImage" -}}
{{- $i := .Values.image -}}
{{- include "ott.image" (dict "registry" $i.registry "repository" $i.repository "tag" ($i.tag | default .Chart.AppVersion) "digest" $i.digest) -}}
{{- end -}}

{{/* Without any value the operator's own image; otherwise empty values are taken from it, except the digest. */}}
{{- define "ott.workerImage" -}}
{{- $i := .Values.image -}}
{{- $w := .Values.workerImage -}}
{{- if or $w.registry $w.repository $w.tag $w.digest -}}
{{- include "ott.image" (dict "registry" ($w.registry | default $i.registry) "repository" ($w.repository | default $i.repository) "tag" ($w.tag | default $i.tag | default .Chart.AppVersion) "digest" $w.digest) -}}
{{- else -}}
{{- include "ott.operatorImage" . -}}
{{- end -}}
{{- end -}}

{{- define "ott.sparkImage" -}}
{{- $i := .Values.image -}}
{{- $s := .Values.sparkImage -}}
{{- include "ott.image" (dict "registry" ($s.registry | default $i.registry) "repository" $s.repository "tag" ($s.tag | default $i.tag | default .Chart.AppVersion) "digest" $s.digest) -}}
{{- end -}}

{{/* Rights of the operator in every namespace that it serves. */}}
{{- define "ott.rules" -}}
# Children are written by server-side apply, which needs create and patch; garbage collection deletes them.
- apiGroups: [ots-tunnel.dev]
  resources: [tablestoretunnels]
  verbs: [get, list, watch, patch]
- apiGroups: [ots-tunnel.dev]
  resources: [tablestoretunnels/status]
  verbs: [patch]
# The API server may ask for it where a child blocks the deletion of its owner (OwnerReferencesPermissionEnforcement).
- apiGroups: [ots-tunnel.dev]
  resources: [tablestoretunnels/finalizers]
  verbs: [update]
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get, list, watch, create, patch]
# The operator reads and watches the Secrets of its objects, each by its name, and keeps them only in memory: no list.
- apiGroups: [""]
  resources: [secrets]
  {{- with .Values.rbac.secretNames }}
  resourceNames: {{ toJson . }}
  {{- end }}
  verbs: [get, watch]
- apiGroups: [""]
  resources: [events]
  verbs: [create]
- apiGroups: [sparkoperator.k8s.io]
  resources: [sparkapplications]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs: [get, list, watch, create, patch]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles, rolebindings]
  verbs: [get, list, watch, create, patch]
# The Role of a Spark driver grants exactly these rights, and an account can grant only rights that it has itself.
- apiGroups: [""]
  resources: [pods, services, configmaps, persistentvolumeclaims]
  verbs: [get, list, watch, create, update, patch, delete, deletecollection]
{{- end -}}
