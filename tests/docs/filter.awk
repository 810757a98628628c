# // text         =>  /// text      and the file's first comment describes the file
# int n;  // why  =>  int n;  ///< why
# What Doxygen would take for a command or a tag is escaped; TODO-like marks there are none.
function escaped(text) {
  gsub(/[\\@<>&#%$"]/, "\\\\&", text)
  gsub(/::/, "\\::", text)
  return text
}
NR == 1 && /^\/\// { print "/// @file"; print "///" escaped(substr($0, 3)); top = 1; next }
/^[ ]*\/\// {
  at = index($0, "//")
  print substr($0, 1, at - 1) "///" escaped(substr($0, at + 2))
  next
}
match($0, /[;,{}][ ]+\/\/ /) {
  at = RSTART + RLENGTH - 3
  print substr($0, 1, at - 1) "///<" escaped(substr($0, at + 2))
  next
}
{ print }
