#!/bin/sh
# The pictures of lessons/pictures, by the commands that its page shows:
#   build/tc picture tree --length=11 > lessons/pictures/tree.svg
# pictures.sh TC draws them with the program TC; pictures.sh --check TC compares and fails where
# one has drifted, is missing, or is drawn by no command.
set -eu
[ "$1" = --check ] && { check=yes; shift; } || check=
page=lessons/pictures/README.md
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
sed -n 's/^build\/tc \(picture .*\) > \(lessons\/pictures\/[a-z0-9_]*\.svg\)$/\2 \1/p' $page > "$scratch/list"
failed=0
while read -r file arguments; do
  drawn="$scratch/$(basename "$file")"
  # shellcheck disable=SC2086  # the words of the page are the words of the command
  "$1" $arguments > "$drawn" || { echo "$page: this command fails: tc $arguments"; failed=1; continue; }
  if [ -n "$check" ]; then
    cmp -s "$file" "$drawn" || { echo "$file is not what its command draws: make pictures"; failed=1; }
  else
    cmp -s "$file" "$drawn" || { cp "$drawn" "$file"; echo "drawn: $file"; }
  fi
done < "$scratch/list"
for file in lessons/pictures/*.svg; do
  [ -e "$scratch/$(basename "$file")" ] || { echo "$file: no command of $page draws it"; failed=1; }
done
exit $failed
