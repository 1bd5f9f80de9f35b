# What a bash of ours reads at its start: the user's own file, and hooks that say what is output and what is over.
# KEY and FOLDER are put in. Functions come first, so that no alias of the user's gets into them.
# Marks go to the terminal itself: standard output may lead elsewhere after an exec. Nothing of ours is shown by set -x.
__aish_key=KEY __aish_folder=FOLDER
__aish_interrupted() { :; }
# A trace of the call itself would go where standard error led before the call.
__aish_first='{ __aish_keep; } 2>/dev/null'
# Lines that were typed ahead and that no program took would be run unseen: they are handed back.
__aish_ahead() {
  local line
  while IFS= builtin read -r -t 0 && IFS= builtin read -r line; do
    builtin printf '\e]133;L;k=%s;%s\n\a' "$__aish_key" "$line" >/dev/tty
  done </dev/tty
}
# While a prompt is prepared, bash forgets its jobs when it is hung up, unless it is told of them by a trap. The user's own stays.
__aish_hung_up() {
  local job
  for job in $(jobs -p); do
    builtin kill -HUP -- "-$job"
    builtin kill -CONT -- "-$job"
  done
  trap - HUP
  builtin kill -HUP $$
}
__aish_keep() {
  __aish_status=${1-$?} __aish_kept=1
  trap -p HUP >|"$__aish_folder/traps"
  [ -s "$__aish_folder/traps" ] || trap __aish_hung_up HUP
  __aish_ahead
  builtin printf '\e]133;D;k=%s;%s\a\e]133;W;k=%s;%s\a' "$__aish_key" "$__aish_status" "$__aish_key" "$PWD" >/dev/tty
  # Under set -e, what fails here would end the shell.
  case $- in *e*) return 0 ;; esac
  return "$__aish_status"
} 2>/dev/null
__aish_mark() {
  # Start-up files that are read again may have put something of theirs in the first place.
  local status=$?
  [ -n "$__aish_kept" ] || __aish_keep "$status"
  [ "$PROMPT_COMMAND" = "$__aish_first" ] || PROMPT_COMMAND=("$__aish_first" "${PROMPT_COMMAND[@]}")
  __aish_kept=
  PS0='\e]133;C;k=${__aish_key}\a' PS1='\[\e]133;B;k=${__aish_key}\a\]' PS2='\[\e]133;P;k=${__aish_key}\a\]'
  # Exported, the marks would be in the environment of every command.
  builtin export -n PS0 PS1 PS2 __aish_key
  builtin printf '\e]133;W;k=%s;%s\a' "$__aish_key" "$PWD" >/dev/tty
  [ -s "$__aish_folder/traps" ] || trap - HUP
} 2>/dev/null
# The argument is $_, which is so again afterwards.
__aish_ask() {
  local - __aish_line
  set +eu
  # Not by the dot: a shell that is hung up while it reads a file leaves its jobs behind.
  IFS= builtin read -r -d '' __aish_line <"$__aish_folder/ask"
  { builtin eval "$__aish_line" >|"$__aish_folder/answer" </dev/null; } || :
  builtin printf '\e]133;W;k=%s;%s\a\e]133;Q;k=%s\a' "$__aish_key" "$PWD" "$__aish_key" >/dev/tty
} 2>/dev/null
__aish_take() {
  builtin printf '\e]133;L;k=%s;%s\a' "$__aish_key" "$READLINE_LINE" >/dev/tty
  READLINE_LINE= READLINE_POINT=0
} 2>/dev/null
__aish_hook() {
  shopt -s promptvars
  PROMPT_COMMAND=("$__aish_first" "${PROMPT_COMMAND[@]}" '{ __aish_mark; } 2>/dev/null')
  HISTCONTROL=${HISTCONTROL:+$HISTCONTROL:}ignorespace
  builtin bind 'set enable-bracketed-paste on'
  local map
  for map in emacs-standard vi-insert vi-command; do
    builtin bind -m "$map" -x '"\e[9991~": { __aish_ask "$_"; } 2>/dev/null'
    builtin bind -m "$map" -x '"\e[9992~": { __aish_take "$_"; } 2>/dev/null'
  done
} 2>/dev/null
# Ctrl-C ends what runs now, not the rest of the files.
trap __aish_interrupted INT
OWN[ -f ~/.bashrc ] && . ~/.bashrc
case $(trap -p INT) in *__aish_interrupted*) trap - INT ;; esac
__aish_hook
# Whoever leaves at once leaves with 0.
:
