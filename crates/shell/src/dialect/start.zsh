# What a zsh of ours reads instead of ~/.zshrc: that file, and hooks that say what is output and what is over.
# OPEN and FOLDER are put in. Functions come first, so that no alias of the user's gets into them.
# Marks go to the terminal itself: standard output may lead elsewhere after an exec. Each function that is called from outside sends
# its output and errors nowhere and has options of its own: nothing shows of a trace or of a trap of the user's.
if [ -n "${AISH_ZDOTDIR-}" ]; then ZDOTDIR=$AISH_ZDOTDIR; else unset ZDOTDIR; fi
unset AISH_ZDOTDIR __aish_own
__aish_folder=FOLDER
# What runs between a line and its mark has the options it was written for from its first word on: no trace of it is shown. A trap at each
# command (DEBUG) is one in functions too; of ours it gets the first words only.
IFS= builtin read -rd '' __aish_text <<'END'
# What proves a mark that ends something is in a file: no variable and no function shows it.
__aish_say() {
  local key
  IFS= builtin read -r key <$__aish_folder/key
  builtin print -rn -- $'\e]133;'"$1;k=$key;${2-}"$'\a' >/dev/tty
}
__aish_begun() { trap - DEBUG ZERR; __aish_say C } >/dev/null 2>&1
# What would end a mark before its end is written by its number.
__aish_hand_back() {
  local text=${1//\%/%25}
  text=${text//$'\e'/%1b}
  __aish_say L "${text//$'\a'/%07}"
}
# What was typed ahead and that no program took would be run unseen: it is taken back while nobody reads the terminal. So the end of a
# command is said with a number, and nothing goes on before that number is in the pipe; a minute is as good as never.
__aish_end() {
  local number
  typeset -g __aish_pause=$((${__aish_pause:-0} + 1))
  __aish_say D "$1;$__aish_pause"
  repeat 60; do
    IFS= builtin read -r -t 1 number && [[ $number == $__aish_pause ]] && break
  done <>$__aish_folder/go
}
__aish_over() {
  local __aish_status=$?
  trap - DEBUG ZERR
  __aish_end $__aish_status
} >/dev/null 2>&1
END
builtin emulate zsh -o no_xtrace -o local_traps -c "$__aish_text"
unset __aish_text
# Ours are the first and the last, whatever was put there meanwhile; keys too are as they have to be.
__aish_arm() {
  emulate -L zsh -o no_xtrace; trap - DEBUG ZERR
  precmd_functions=(__aish_over ${${precmd_functions:#__aish_over}:#__aish_mark} __aish_mark)
  preexec_functions=(${preexec_functions:#__aish_begun} __aish_begun)
  # Nobody is idle who reads an answer; a trap of the user's that is called then does no harm.
  (( $+functions[TRAPALRM] )) || TMOUT=0
  # No percent sign, no dollar, no exclamation mark: they are the same under all options.
  PS1=$'\e]133;B;k=OPEN\a' RPS1= PS2=$'\e]133;P;k=OPEN\a' RPS2=
  # Exported, they would be in the environment of every command.
  typeset -g +x PS1 PS2
  local map
  for map in main emacs viins vicmd; do
    bindkey -M $map '\e[9991~' __aish_ask
    bindkey -M $map '\e[9992~' __aish_take
    bindkey -M $map '\e[9993~' __aish_mend
  done
}
__aish_mark() {
  unsetopt prompt_sp prompt_cr
  __aish_arm
} >/dev/null 2>&1
# Asked for where the prompt came without its marks: after precmd_functions=(), say, or a Ctrl-C that struck a hook. Hooked up again,
# an empty line brings another one, with marks, and what was typed meanwhile stands in that. A line editor within a command (vared)
# gets no line of ours.
__aish_mend() {
  emulate -L zsh -o no_xtrace; trap - DEBUG ZERR
  [[ $CONTEXT == start ]] || return
  __aish_arm
  [[ -z $BUFFER ]] || zle push-line
  zle accept-line
} >/dev/null 2>&1
# Not read as a file: after one, a shell that was warned of its jobs would not be left by the next exit.
__aish_asked() { builtin eval "$(<"$__aish_folder/ask")" >|"$__aish_folder/answer" 2>/dev/null </dev/null }
__aish_ask() {
  emulate -L zsh -o no_xtrace; trap - DEBUG ZERR
  __aish_asked || :
  __aish_say Q
} >/dev/null 2>&1
__aish_take() {
  emulate -L zsh -o no_xtrace; trap - DEBUG ZERR
  __aish_hand_back "$BUFFER"
  BUFFER=
} >/dev/null 2>&1
__aish_interrupted() { : }
__aish_hook() {
  emulate -L zsh -o no_xtrace
  # A substitution would show no traps: they are not inherited.
  trap >|"$__aish_folder/traps"
  case $(<"$__aish_folder/traps") in *__aish_interrupted*) unsetopt local_traps; trap - INT ;; esac
  zle -N __aish_ask
  zle -N __aish_take
  zle -N __aish_mend
}
# Without these there are no marks, and zsh takes none of them back: a shell that does not read those files takes its place.
__aish_check() {
  emulate -L zsh -o no_xtrace
  [[ "${(t)PS1}${(t)RPS1}${(t)PS2}${(t)RPS2}" == *readonly* ]] || return 0
  builtin print -r -- 'the start-up files make a prompt variable (PS1, RPS1, ...) read-only: aish needs them' >/dev/tty
  builtin exit 1
} >/dev/null 2>&1
# Ctrl-C ends what runs now, not the rest of the file.
trap __aish_interrupted INT
OWN[ -f "${ZDOTDIR:-$HOME}/.zshrc" ] && . "${ZDOTDIR:-$HOME}/.zshrc"
__aish_check
{ __aish_hook; __aish_mark; } >/dev/null 2>&1
# Whoever leaves at once leaves with 0.
:
