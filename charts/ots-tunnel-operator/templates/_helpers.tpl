{{- define "ott.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 53 | trimAll "-." -}}
{{- end -}}

{{- define "ott.fullname" -}}
{{- $name := include "ott.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 53 | trimAll "-." -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 53 | trimAll "-." -}}
{{- end -}}
{{- end -}}

{{- define "ott.selector" -}}
app.kubernetes.io/name: {{ include "ott.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "ott.namespace" -}}
{{- .Values.namespaceOverride | default .Release.Namespace -}}
{{- end -}}

{{/* Labels of every object. Those by which objects are found cannot be replaced. */}}
{{- define "ott.labels" -}}
{{- $own := dict "app.kubernetes.io/version" .Chart.AppVersion "app.kubernetes.io/managed-by" .Release.Service -}}
{{- $own = set $own "helm.sh/chart" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_") -}}
{{- merge (include "ott.selector" . | fromYaml) $own (.Values.commonLabels | default dict) | toYaml -}}
{{- end -}}

{{/* Annotations of an object, or nothing; the argument is a dict with root, and own with those of this object. */}}
{{- define "ott.annotations" -}}
{{- with merge (dict) (.own | default dict) (.root.Values.commonAnnotations | default dict) -}}
annotations: {{- toYaml . | nindent 2 }}
{{- end -}}
{{- end -}}

{{/* Metadata of an object but its name; the argument is that of ott.annotations, and labels with further ones. */}}
{{- define "ott.metadata" -}}
labels: {{- merge (include "ott.labels" .root | fromYaml) (.labels | default dict) | toYaml | nindent 2 }}
{{- with include "ott.annotations" . }}
{{ . }}
{{- end }}
{{- end -}}

{{- define "ott.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "ott.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{- define "ott.leaseName" -}}
{{- .Values.operator.leaderElection.leaseName | default (include "ott.fullname" .) -}}
{{- end -}}

{{/* Whether the cluster has OpenShift's security kinds: `true` or nothing. */}}
{{- define "ott.isOpenShift" -}}
{{- if .Capabilities.APIVersions.Has "security.openshift.io/v1" }}true{{ end -}}
{{- end -}}

{{/* Rule of a NetworkPolicy that admits name servers, as JSON: it sees the port behind their Service, on OpenShift 5353. */}}
{{- define "ott.nameServers" -}}
{{- $ports := list -}}
{{- range ternary (list 53 5353) (list 53) (eq (include "ott.isOpenShift" .) "true") -}}
{{- $ports = concat $ports (list (dict "port" . "protocol" "UDP") (dict "port" . "protocol" "TCP")) -}}
{{- end -}}
{{- dict "ports" $ports | toJson -}}
{{- end -}}

{{/* Whether user and group of pods are left to the cluster: `true` or nothing. */}}
{{- define "ott.clusterAssignsUser" -}}
{{- $found := eq (include "ott.isOpenShift" .) "true" -}}
{{- if or (eq .Values.clusterAssignsUser "always") (and (eq .Values.clusterAssignsUser "auto") $found) }}true{{ end -}}
{{- end -}}

{{/* Spread of the operator's pods over the domains of a label of nodes, where possible. */}}
{{- define "ott.spread" -}}
{{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
- maxSkew: 1
  topologyKey: {{ . }}
  whenUnsatisfiable: ScheduleAnyway
  matchLabelKeys: [pod-template-hash]
  labelSelector:
    matchLabels: {{- include "ott.selector" $ | nindent 6 }}
{{- end }}
{{- end -}}

{{/* Reference of an image; the argument is a dict with registry, repository, tag and digest. */}}
{{- define "ott.image" -}}
{{- $name := .repository -}}
{{- if .registry }}{{ $name = printf "%s/%s" .registry .repository }}{{ end -}}
{{- if .digest }}{{ printf "%s@%s" $name .digest }}{{ else }}{{ printf "%s:%s" $name .tag }}{{ end -}}
{{- end -}}

{{/* Registry of an image whose own one is empty. */}}
{{- define "ott.registry" -}}
{{- .Values.image.registry | default (.Values.global).imageRegistry | default "" -}}
{{- end -}}

{{- define "ott.operatorImage" -}}
{{- $i := .Values.image -}}
{{- include "ott.image" (dict "registry" (include "ott.registry" .) "repository" $i.repository "tag" ($i.tag | default .Chart.AppVersion) "digest" $i.digest) -}}
{{- end -}}

{{/* Without any value the operator's own image; otherwise empty values are taken from it, except the digest. */}}
{{- define "ott.workerImage" -}}
{{- $i := .Values.image -}}
{{- $w := .Values.workerImage -}}
{{- if or $w.registry $w.repository $w.tag $w.digest -}}
{{- include "ott.image" (dict "registry" ($w.registry | default (include "ott.registry" .)) "repository" ($w.repository | default $i.repository) "tag" ($w.tag | default $i.tag | default .Chart.AppVersion) "digest" $w.digest) -}}
{{- else -}}
{{- include "ott.operatorImage" . -}}
{{- end -}}
{{- end -}}

{{- define "ott.sparkImage" -}}
{{- include "ott.ownImage" (list . .Values.sparkImage "sparkImage") -}}
{{- end -}}

{{- define "ott.sparkIcebergImage" -}}
{{- include "ott.ownImage" (list . .Values.sparkIcebergImage "sparkIcebergImage") -}}
{{- end -}}

{{/* An image with a repository of its own; registry and tag are the operator's where they are empty. The argument is a
     list of the root, the values of the image, and their name. */}}
{{- define "ott.ownImage" -}}
{{- $root := index . 0 -}}
{{- $i := $root.Values.image -}}
{{- $s := index . 1 -}}
{{- include "ott.image" (dict "registry" ($s.registry | default (include "ott.registry" $root)) "repository" (required (printf "%s.repository is needed" (index . 2)) $s.repository) "tag" ($s.tag | default $i.tag | default $root.Chart.AppVersion) "digest" $s.digest) -}}
{{- end -}}

{{/* What the NetworkPolicy of each object's workers allows, as JSON for `--worker-network`. */}}
{{- define "ott.workerNetwork" -}}
{{- $n := .Values.workers.networkPolicy -}}
{{- $home := dict "matchLabels" (dict "kubernetes.io/metadata.name" (include "ott.namespace" .)) -}}
{{- $operator := dict "namespaceSelector" $home "podSelector" (dict "matchLabels" (include "ott.selector" . | fromYaml)) -}}
{{- $found := dict "from" (prepend ($n.from | default list) $operator) -}}
{{- if $n.egress.enabled -}}
{{- $ports := list -}}
{{- range $n.egress.ports -}}
{{- $ports = append $ports (dict "port" . "protocol" "TCP") -}}
{{- end -}}
{{- $names := include "ott.nameServers" . | fromJson -}}
{{- $found = set $found "egress" (concat (list $names (dict "ports" $ports)) ($n.egress.extra | default list)) -}}
{{- end -}}
{{- toJson $found -}}
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
- apiGroups: [""]
  resources: [configmaps, serviceaccounts]
  verbs: [get, list, watch, create, patch]
# Before a worker is taken away, its pod gets a deletion cost, so that the one with the fewest channels goes.
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch, patch]
{{- if .Values.workers.podDisruptionBudget.enabled }}
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch]
{{- end }}
{{- if .Values.workers.networkPolicy.enabled }}
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, list, watch, create, patch]
{{- end }}
{{- if .Values.workers.podMonitor.enabled }}
- apiGroups: [monitoring.coreos.com]
  resources: [podmonitors]
  verbs: [get, list, watch, create, patch, delete]
{{- end }}
{{- if .Values.engines.spark.enabled }}
- apiGroups: [sparkoperator.k8s.io]
  resources: [sparkapplications]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles, rolebindings]
  verbs: [get, list, watch, create, patch]
# The Role of a Spark driver grants exactly these rights, and an account can grant only rights that it has itself.
- apiGroups: [""]
  resources: [pods, services, configmaps, persistentvolumeclaims]
  verbs: [get, list, watch, create, update, patch, delete, deletecollection]
{{- end }}
{{- with .Values.rbac.extraRules }}
{{ toYaml . }}
{{- end }}
{{- end -}}
