#!/bin/bash
# images.sh [app] [slim] [spark] [spark-iceberg]: build our images from worker/image/Containerfile, without a registry
# and without network in the build; app and spark when no target is given. Prints one line per image and one per
# archive, for eval:
#   APP_IMAGE=kubeone.local/ots-tunnel:HASH          APP_ARCHIVE=...tar     (for `cluster.sh load NAME $APP_ARCHIVE`)
#   SLIM_IMAGE=kubeone.local/ots-tunnel-slim:HASH    SLIM_ARCHIVE=...tar    (app without the sink of files)
#   SPARK_IMAGE=kubeone.local/ots-tunnel-spark:HASH  SPARK_ARCHIVE=...tar
#   ICEBERG_IMAGE=kubeone.local/ots-tunnel-spark-iceberg:HASH  ICEBERG_ARCHIVE=...tar
# HASH covers all inputs, so that an existing image is not built again (0.1 s) and a pod that names it cannot get an
# older one.
#
# mmdebstrap makes the base image of the Containerfile. The dependencies, exactly those of uv.lock, are downloaded once
# into the cache. buildah keeps the layers, so that a change of our code rebuilds only the last one.
# The Spark image's base also contains the spark-operator program, so that the operator's chart can use the same image.
set -euo pipefail
HERE=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
ROOT=$(realpath "$HERE/../..")
. "$HERE/cache.sh"
PATH=$PATH:/usr/sbin:/sbin
UV=0.13.8 HATCHLING=1.33.0 CYTHON=3.3.1 SETUPTOOLS=84.2.1 # as in the Containerfile
PYTHON_BASE=python:3.11-slim-bookworm SUITE=bookworm # as in the Containerfile
# libstdc++6: every Debian with apt has it, so compiled wheels expect it
APP_PACKAGES=python3,ca-certificates,tini,libstdc++6
PYTHON_PACKAGES=python3,python3-venv,ca-certificates,tini,libstdc++6
BUILD_PACKAGES=$PYTHON_PACKAGES,gcc,libc6-dev,python3-dev # for compiling the codec
SPARK_PACKAGES=$PYTHON_PACKAGES,procps,openjdk-17-jre-headless
# Of the image app: what no program in a container reads; the copyright of each package stays, and gconv is of `iconv`,
# Python has its own. And as in Debian's own images without the package usrmerge, which brings Perl. 100 MB in all.
APP_OPTIONS=("--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr")
for path in /usr/share/{locale,man,info,doc,lintian,bash-completion} '/usr/lib/*/gconv'; do
  APP_OPTIONS+=("--dpkgopt=path-exclude=$path/*")
done
APP_OPTIONS+=("--dpkgopt=path-include=/usr/share/doc/*/copyright")
KEEP=2                     # number of archives to keep per image, because several working trees may share the cache
IMAGES=$CACHE/images WHEELS=$CACHE/wheels
INPUTS=(pyproject.toml uv.lock LICENSE README.md crds operator worker)
mkdir -p "$IMAGES" "$WHEELS"

buildah() { command buildah --root "$CACHE/buildah" --runroot "$IMAGES/run" --storage-driver "$DRIVER" "$@"; }
logged() { # LOG COMMAND...
  local log=$LOGS/$1.log; shift
  "$@" >"$log" 2>&1 || { tail -n 15 "$log" >&2; fail "$1 failed: $log"; }
}

stage() { # copies the inputs without files of Python's and editors' caches; sets CONTEXT
  CONTEXT=$(mktemp -d "$IMAGES/context.XXXXXX")
  local present=() path
  for path in "${INPUTS[@]}"; do [[ ! -e $ROOT/$path ]] || present+=("$path"); done
  tar -C "$ROOT" --exclude=__pycache__ --exclude='*.pyc' --exclude='*.so' --exclude='.*' -cf - "${present[@]}" | tar -C "$CONTEXT" -xf -
  # File modes depend on the umask of the clone and would change the layers.
  chmod -R u=rwX,go=rX "$CONTEXT"
}

fingerprint() { # EXTRA...: the hash of the staged inputs and of the base's recipe
  { printf '%s\n' "$@"; cd "$CONTEXT" && find . -type f -print0 | sort -z | xargs -0 sha256sum; } | sha256sum | cut -c1-12
}

base() { # PACKAGES [FILE...]: a Debian with these packages and these programs as a local image; sets BASE
  local packages=$1 tag container file options=() start=$SECONDS; shift
  [[ $packages != "$APP_PACKAGES" ]] || options=("${APP_OPTIONS[@]}")
  tag=base:$(printf '%s\n' "$SUITE" "$packages" "${options[@]}" "$@" | sha256sum | cut -c1-12)
  BASE=localhost/$tag
  ! buildah inspect --type image "$tag" >/dev/null 2>&1 || return 0
  say "making the base image $BASE with mmdebstrap (about 40 s; log $LOGS/base.log)"
  # Debian's Python compiles itself while it is installed: where the caller's variables say would be in the image.
  SOURCE_DATE_EPOCH=0 logged base env -u PYTHONPYCACHEPREFIX -u PYTHONDONTWRITEBYTECODE mmdebstrap --variant=essential \
    "${options[@]}" --include="$packages" "$SUITE" "$IMAGES/base.tar" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"}
  container=$(buildah from scratch)
  buildah add --quiet "$container" "$IMAGES/base.tar" / >/dev/null
  for file; do buildah copy --quiet --chmod 755 "$container" "$file" "/usr/bin/$(basename "$file" | sed 's/-[0-9a-f]\{16\}$//')" >/dev/null; done
  if [[ $# -gt 0 ]]; then # the operator's webhook writes its certificates here, as user 185
    buildah config --workingdir /etc/k8s-webhook-server/serving-certs "$container"
    buildah run --isolation oci --network none "$container" chmod -R 777 /etc/k8s-webhook-server
    buildah config --workingdir / "$container"
  fi
  buildah commit --quiet "$container" "$tag" >/dev/null
  buildah rm "$container" >/dev/null
  rm "$IMAGES/base.tar"
  say "made $BASE in $((SECONDS - start)) s"
}

wheels() { # EXTRA...: downloads the packages of uv.lock, for the image's Python, into one folder
  local list start=$SECONDS extras=() extra
  for extra; do extras+=(--extra "$extra"); done
  list=$CONTEXT/requirements.txt
  (cd "$CONTEXT" && "$TOOLS/bin/uv" export --quiet --offline --frozen --no-dev --no-emit-project --no-annotate --no-header "${extras[@]}" -o "$list")
  local mark
  mark=$WHEELS/complete-$({ cat "$list"; echo "$UV $HATCHLING $CYTHON $SETUPTOOLS"; } | sha256sum | cut -c1-16)
  if [[ ! -f $mark ]]; then
    say "downloading the dependencies of uv.lock for: $* (up to 1 min; log $LOGS/wheels.log)"
    # setuptools: PySpark comes as sources only
    logged wheels "$TOOLS/bin/pip" download --disable-pip-version-check --no-deps --python-version 3.11 --dest "$WHEELS" \
      "uv==$UV" setuptools wheel
    logged wheels "$TOOLS/bin/pip" download --disable-pip-version-check --python-version 3.11 --only-binary=:all: --dest "$WHEELS" \
      "hatchling==$HATCHLING" "cython==$CYTHON" "setuptools==$SETUPTOOLS"
    logged wheels "$TOOLS/bin/pip" download --disable-pip-version-check --no-deps --require-hashes --python-version 3.11 \
      --dest "$WHEELS" -r "$list"
    touch "$mark"
    say "downloaded in $((SECONDS - start)) s"
  fi
  rm "$list"
}

jars() { # FOLDER WHAT: jars into the context, where the Containerfile finds them
  local jars
  # in a shell of its own: the lock of the download has the number of this script's
  jars=$(maven_jars "$1" "$2" "$ROOT/worker/image/$1" && printf '%s' "$JARS") || fail "no jars of $1, see above"
  cp "$jars"/*.jar "$CONTEXT/worker/image/$1/"
}

pyspark_of_iceberg() { # downloads the PySpark of the image for Iceberg, beside that of uv.lock
  local list=$CONTEXT/worker/image/iceberg/requirements.txt mark
  mark=$WHEELS/complete-$(sha256sum <"$list" | cut -c1-16)
  [[ ! -f $mark ]] || return 0
  say "downloading the PySpark of the image for Iceberg, 440 MB (log $LOGS/wheels.log)"
  logged wheels "$TOOLS/bin/pip" download --disable-pip-version-check --no-deps --require-hashes --python-version 3.11 \
    --dest "$WHEELS" -r "$list"
  touch "$mark"
}

build() { # TARGET NAME HASH BUILD-ARGS...
  local target=$1 name=kubeone.local/$2:$3 archive_stem=$IMAGES/$2 archive=$IMAGES/$2-$3.tar start=$SECONDS old; shift 3
  say "building the image $name (log $LOGS/image-$target.log)"
  logged "image-$target" buildah bud --layers --pull-never --isolation oci --network none \
    --volume "$WHEELS:/wheels:ro" --build-arg UV_FIND_LINKS=/wheels --build-arg UV_OFFLINE=1 "$@" \
    --file "$CONTEXT/worker/image/Containerfile" --target "$target" --tag "$name" "$CONTEXT"
  local pushed=$SECONDS
  # A Docker archive has uncompressed layers; compressing them for an OCI archive takes longer than all other steps.
  rm -f "$archive.new"
  logged "image-$target-archive" buildah push "$name" "docker-archive:$archive.new:$name"
  mv "$archive.new" "$archive"
  pushed=$((SECONDS - pushed))
  say "built $name in $((SECONDS - start)) s ($pushed s of it for the archive), $(du -m "$archive" | cut -f1) MiB"
  # shellcheck disable=SC2012 # names are ours: no newlines in them
  ls -t "$IMAGES/${archive_stem##*/}"-????????????.tar | tail -n "+$((KEEP + 1))" | while read -r old; do
    rm "$old"
    buildah rmi "${name%:*}:$(basename "$old" .tar | sed 's/.*-//')" >/dev/null 2>&1 || true
  done
}

tidy() { # removes the small layers that every change of our code leaves behind
  [[ $(buildah images --all --quiet | wc -l) -lt 400 ]] || buildah rmi --prune >/dev/null 2>&1 || true
}

want() { [[ " $TARGETS " == *" $1 "* ]]; }
TARGETS=${*:-app spark}
target='(app|slim|spark|spark-iceberg)'
[[ $TARGETS =~ ^$target(\ $target)*$ ]] || { say "usage: images.sh [app] [slim] [spark] [spark-iceberg]"; exit 2; }

stage
trap 'rm -rf "$CONTEXT"' EXIT
exec 9>"$IMAGES/lock"
flock -w 900 9 || fail "another images.sh works for 15 minutes already"

DRIVER=overlay
[[ $(stat -f -c %T "$IMAGES") != overlayfs ]] || DRIVER=vfs # an overlay does not nest
app=$(fingerprint "$SUITE" "$APP_PACKAGES" "${APP_OPTIONS[@]}" "$BUILD_PACKAGES") spark=
if want spark || want spark-iceberg; then
  [[ -x $BIN/spark-operator ]] || fail "$BIN/spark-operator is not built; run $HERE/build.sh"
  operator=$(basename "$(readlink "$BIN/spark-operator")") # its name contains the hash of its recipe
  spark=$(fingerprint "$SUITE" "$SPARK_PACKAGES" "$BUILD_PACKAGES" "$operator")
fi

missing() { want "$1" && [[ ! -f $IMAGES/ots-tunnel$2.tar ]]; } # TARGET SUFFIX
if missing app "-$app" || missing slim "-slim-$app" || missing spark "-spark-$spark" ||
  missing spark-iceberg "-spark-iceberg-$spark"; then
  if [[ $EUID -ne 0 ]]; then say "images.sh: building images needs root"; exit 2; fi
  "$HERE/packages.sh" images
  python_tools "uv==$UV" pip
fi
build_app() { # NAME BUILD-ARGS...
  wheels operator emulator cli files kafka
  base "$APP_PACKAGES"
  buildah tag "$BASE" "$PYTHON_BASE" # the name in the Containerfile
  base "$BUILD_PACKAGES"
  build app "$1" "$app" --build-arg "BUILD_BASE=$BASE" "${@:2}"
  tidy
}
if want app; then
  ! missing app "-$app" || build_app ots-tunnel
  echo "APP_IMAGE=kubeone.local/ots-tunnel:$app"
  echo "APP_ARCHIVE=$IMAGES/ots-tunnel-$app.tar"
fi
if want slim; then
  ! missing slim "-slim-$app" || build_app ots-tunnel-slim --build-arg WITHOUT=files
  echo "SLIM_IMAGE=kubeone.local/ots-tunnel-slim:$app"
  echo "SLIM_ARCHIVE=$IMAGES/ots-tunnel-slim-$app.tar"
fi
build_spark() { # TARGET
  local build_base
  base "$BUILD_PACKAGES"
  build_base=$BASE
  base "$SPARK_PACKAGES" "$CACHE/programs/$operator"
  build "$1" "ots-tunnel-$1" "$spark" --build-arg "BASE=$BASE" --build-arg "BUILD_BASE=$build_base"
  tidy
}
if want spark; then
  if missing spark "-spark-$spark"; then
    wheels spark
    jars lake "the jars of Delta and for buckets"
    build_spark spark
  fi
  echo "SPARK_IMAGE=kubeone.local/ots-tunnel-spark:$spark"
  echo "SPARK_ARCHIVE=$IMAGES/ots-tunnel-spark-$spark.tar"
fi
if want spark-iceberg; then
  if missing spark-iceberg "-spark-iceberg-$spark"; then
    wheels spark
    pyspark_of_iceberg
    jars iceberg "the jar of Iceberg"
    build_spark spark-iceberg
  fi
  echo "ICEBERG_IMAGE=kubeone.local/ots-tunnel-spark-iceberg:$spark"
  echo "ICEBERG_ARCHIVE=$IMAGES/ots-tunnel-spark-iceberg-$spark.tar"
fi
