# Divides a page into its blocks of commands, files in `dir` named by the page's order: block001.sh, .. (last..: those of the section
# "Taking it away"). kind=machines: a block must say on which machines it is to run. kind=pasted: beside each file stands FILE.head, with
# the line of the block's fence in the page and what the comment above the fence says of it, and lines of FILE are the lines below
# the fence. Of a block ```console, FILE has the commands, and FILE.want.LINE the output that the page prints of the command in LINE.

function bad(what) { printf "line %d: %s: %s\n", NR, what, $0 > "/dev/stderr"; failed = 1; exit 1 }

/^## Taking it away/ { last = 1 }

!inside && /^ *(```|~~~)/ && !/^```(sh|console|text|toml|yaml|ini|json|sql|python)$/ { bad("neither commands (```sh, ```console) nor configuration or output") }

!inside && /^```/ {
  inside = 1; type = substr($0, 4); first = 1; command = 0; want = ""
  if (kind == "machines" && type == "console") type = "text"
  said = mark; mark = ""
  shell = type == "sh" || type == "console" || said ~ /^file: /
  if (said != "" && !shell) bad("a mark above a block that has no commands")
  if (shell && kind == "pasted") begin_block(NR)
  next
}

inside && /^```$/ {
  inside = 0
  if (shell && said ~ /^file: /) print "END_OF_FILE" > file
  if (shell) { if (file) close(file); if (want) close(want) }
  next
}

inside && shell && kind == "machines" && first {
  first = 0
  if ($0 !~ /^# on [a-z]/) bad("a block of commands that says not on which machine")
  begin_block(NR)
}

inside && shell && type == "console" {
  if (goes_on || /^\$ /) {
    line = $0; if (!goes_on) { sub(/^\$ /, "", line); want = file ".want." (NR - fence); printf "exec > '%s.out.%d'; ", file, NR - fence > file }
    goes_on = line ~ /\\$/
    print line > file
  } else {
    if (want == "") bad("output of no command (`$ `)")
    print > want
    print "" > file
  }
  next
}

inside && shell { print > file; next }

!inside { mark = "" }
!inside && /^<!-- (not run|bare only|file): .* -->$/ { mark = substr($0, 6, length($0) - 9) }
!inside && /^<!-- numbers vary -->$/ { mark = "numbers vary" }

END { if (!failed && inside) { print "a block without an end" > "/dev/stderr"; exit 1 } }

function begin_block(line) {
  file = sprintf("%s/%s%03d.sh", dir, last ? "last" : "block", ++count)
  fence = line
  printf "" > file
  if (kind == "pasted") { print line > (file ".head"); print said > (file ".head"); close(file ".head") }
  if (said ~ /^file: /) printf "cat > '%s' <<'END_OF_FILE'\n", substr(said, 7) > file
}
