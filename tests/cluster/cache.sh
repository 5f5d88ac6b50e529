# cache.sh: paths of the local cluster's programs and shared functions; the other scripts source it.
# shellcheck shell=bash
CACHE=${OTS_TUNNEL_CACHE:-$HOME/.cache/ots-tunnel}
BIN=$CACHE/bin   # programs by their plain names: put this on PATH
LOGS=$CACHE/logs # of builds; a cluster's own logs are in its state folder
mkdir -p "$BIN" "$LOGS" "$CACHE/programs"

say() { printf '%s\n' "$*" >&2; } # progress for human readers; standard output is for machine-readable lines
fail() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }
link() { ln -sfn "$1" "$2.new.$$" && mv -fT "$2.new.$$" "$2"; } # TARGET NAME: replaces the link atomically, also while it is in use

# A process is recorded as "PID START-TIME": after a crash or a reboot another process may have its PID.
start_time() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }
remember() { echo "$1 $(start_time "$1")" >"$2"; } # PID FILE
alive() { # FILE: running and not a zombie; a busy init may leave a zombie for seconds
  local pid started
  read -r pid started 2>/dev/null <"$1" || return 1
  [[ -n $started && $(start_time "$pid") == "$started" ]] && ! grep -q '^State:.Z' "/proc/$pid/status" 2>/dev/null
}
stop() { # SIGNAL FILE...: signal, wait up to 10 s, then kill
  local signal=$1 file n; shift
  for file; do ! alive "$file" || kill "-$signal" "$(cut -d' ' -f1 "$file")" 2>/dev/null || true; done
  for file; do
    for ((n = 0; n < 100; n++)); do alive "$file" || break; sleep 0.1; done
    ! alive "$file" || kill -KILL "$(cut -d' ' -f1 "$file")" 2>/dev/null || true
    rm -f "$file"
  done
}

wait_for() { # SECONDS WHAT COMMAND...: the errors at the end of the log that WHAT names, as "(log PATH)", explain a failure
  local limit=$1 what=$2 end; shift 2; end=$((SECONDS + limit))
  until "$@" >/dev/null 2>&1; do
    if ((SECONDS >= end)); then
      [[ ! $what =~ \(log\ (.*)\) ]] || errors_of "${BASH_REMATCH[1]}" >&2
      fail "timed out after $limit s waiting for $what"
    fi
    sleep 0.1
  done
}

errors_of() { # LOG: its last lines that tell of an error, in the forms of klog and of logrus
  grep -E '^[EF][0-9]{4} |level=(error|fatal)' "$1" | cut -c1-400 | tail -n 15 || say "no error in $1"
}

python_tools() { # REQUIREMENT...: programs that come as Python wheels, in a virtual environment of the cache
  TOOLS=$CACHE/programs/tools-$(printf '%s\n' "$@" | sha256sum | cut -c1-16)
  [[ ! -f $TOOLS/complete ]] || return 0
  say "installing $* from the Python package index (log $LOGS/tools.log)"
  rm -rf "$TOOLS"
  { python3 -m venv "$TOOLS" && "$TOOLS/bin/pip" install --quiet --disable-pip-version-check "$@"; } >"$LOGS/tools.log" 2>&1 ||
    { tail -n 5 "$LOGS/tools.log" >&2; fail "installing $* failed: $LOGS/tools.log"; }
  touch "$TOOLS/complete"
}

COPY_JARS=org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies
maven_jars() { # NAME WHAT FOLDER: fetches the jars of the folder's pom.xml, sets JARS to where they are
  # The folder of the jars is named by a hash of their list. Status 1 of the script: no Java, or no artifact repository;
  # 2: other jars arrived than are listed.
  local name=$1 what=$2 folder=$3 log=$LOGS/build-$1.log
  JARS=$CACHE/programs/$name-$(sha256sum <"$folder/jars.sha256" | cut -c1-16)
  exec 9>"$CACHE/$name.lock"
  flock 9 # several runs at once fetch them once
  [[ ! -d $JARS ]] || return 0
  "$(dirname "${BASH_SOURCE[0]}")/packages.sh" javac || exit 1
  say "fetching $what (about half a minute; log $log)"
  rm -rf "$JARS.new"
  mvn -B -q -f "$folder/pom.xml" -Dmaven.repo.local="$CACHE/maven" -DoutputDirectory="$JARS.new" -DincludeScope=runtime \
    $COPY_JARS >"$log" 2>&1 || { grep -m 3 ERROR "$log" >&2 || true; fail "$what cannot be downloaded: $log"; }
  (cd "$JARS.new" && sha256sum ./*.jar | sed 's| \./| |' | diff - "$folder/jars.sha256") >>"$log" ||
    { tail -n 5 "$log" >&2; say "other jars arrived than jars.sha256 lists: $log"; exit 2; }
  mv "$JARS.new" "$JARS"
}
