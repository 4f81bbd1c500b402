#!/bin/sh
# Fetches the IMDb reviews (Maas et al. 2011, "Learning Word Vectors for Sentiment Analysis") into DEST/aclImdb.
#
#   train/get_imdb.sh DEST [ARCHIVE [MD5]]
#
# ARCHIVE is a local copy to use instead of downloading; its md5 must be the official one, or MD5 if that is given.
# DEST/aclImdb appears whole or not at all: everything is checked and unpacked beside it and then renamed.
set -eu

url=https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz
official_md5=7c2ac02c03563afcf9b574c7e56c153a
official_reviews=50000

fail() {
  echo "get_imdb: $1" >&2
  exit 1
}

first_line() { printf '%s\n' "$1" | head -n 1; }

md5_of() {
  if command -v md5sum >/dev/null; then
    md5sum <"$1" | cut -d ' ' -f 1
  else
    md5 -q "$1" # macOS
  fi
}

# Labelled reviews below a folder.
reviews_in() {
  find "$1/train/neg" "$1/train/pos" "$1/test/neg" "$1/test/pos" -name '*.txt' 2>/dev/null | wc -l | tr -d ' '
}

# Ends the script if the data is there already. ORIGIN, written last, says which archive it came from and how many
# reviews that held; a copy that someone unpacked by hand has none and must be the official collection.
use_what_is_there() {
  from=$official_md5 expected=$official_reviews
  if [ -f "$target/ORIGIN" ]; then read -r from expected <"$target/ORIGIN" || true; fi
  found=$(reviews_in "$target")
  [ "$found" = "$expected" ] ||
    fail "$target is not complete ($found of $expected reviews); remove it and try again"
  [ "$from" = "$md5" ] ||
    fail "$target comes from another archive (md5 $from, asked for $md5); remove it and try again"
  echo "$target is complete: $found reviews"
  exit 0
}

download() {
  command -v curl >/dev/null ||
    fail "curl is not installed; install it, or give a local copy of $url"
  echo "downloading $url (84 MB)" >&2
  progress=--silent
  [ ! -t 2 ] || progress=--progress-bar
  status=0
  curl "$progress" --fail --location --connect-timeout 30 --speed-time 60 --speed-limit 1000 \
    --output "$work/archive" "$url" || status=$?
  case $status in
    0) ;;
    5 | 6 | 7 | 28) fail "cannot download $url: no network, or the server does not answer" ;;
    22) fail "cannot download $url: the server refuses it" ;;
    23) fail "cannot download $url: cannot write to $dest; is the disk full?" ;;
    *) fail "cannot download $url: curl gave up with status $status" ;;
  esac
}

unpack() {
  mkdir "$work/unpacked"
  # The unlabelled reviews are not needed.
  message=$(tar -x -f "$archive" -C "$work/unpacked" --no-same-owner --exclude '*/train/unsup*' 2>&1) ||
    fail "cannot unpack $name: $(first_line "$message")"
  count=$(reviews_in "$work/unpacked/aclImdb")
  [ "$count" -gt 0 ] || fail "$name holds no aclImdb/{train,test}/{neg,pos}/*.txt"
  echo "$md5 $count" >"$work/unpacked/aclImdb/ORIGIN" || fail "cannot write to $dest"
  sync
}

if [ $# -lt 1 ] || [ $# -gt 3 ]; then
  echo "usage: $0 DEST [ARCHIVE [MD5]]" >&2
  exit 2
fi
dest=$1 archive=${2:-} md5=${3:-$official_md5} work=
target=$dest/aclImdb

[ ! -e "$target" ] || use_what_is_there
[ -z "$archive" ] || [ -f "$archive" ] || fail "there is no archive $archive"

trap '[ -z "$work" ] || rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP
message=$(mkdir -p "$dest" 2>&1) || fail "cannot create $dest: $(first_line "$message")"
work=$(mktemp -d "$dest/.imdb.XXXXXX" 2>/dev/null) || fail "cannot write to $dest"

name=${archive:-the download}
if [ -z "$archive" ]; then
  download
  archive=$work/archive
fi
found=$(md5_of "$archive") || fail "cannot read $name"
[ "$found" = "$md5" ] || fail "$name is damaged or another file: its md5 is $found, expected $md5"
unpack
[ ! -e "$target" ] || fail "$target appeared meanwhile"
mv "$work/unpacked/aclImdb" "$target" || fail "cannot rename to $target"
echo "$target: $count reviews"
