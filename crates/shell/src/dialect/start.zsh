# What a zsh of ours reads instead of ~/.zshrc: that file, and hooks that say what is output and what is over.
# KEY and FOLDER are put in. Functions come first, so that no alias of the user's gets into them.
# Marks go to the terminal itself: standard output may lead elsewhere after an exec.
if [ -n "${AISH_ZDOTDIR-}" ]; then ZDOTDIR=$AISH_ZDOTDIR; else unset ZDOTDIR; fi
unset AISH_ZDOTDIR __aish_own
__aish_folder=FOLDER
__aish_begun() { emulate -L zsh -o noxtrace; builtin print -n '\e]133;C;k=KEY\a' >/dev/tty }
__aish_where() { emulate -L zsh -o noxtrace; builtin print -rn $'\e]133;W;k=KEY;'"$PWD"$'\a' >/dev/tty }
# Lines that were typed ahead and that no program took would be run unseen: they are handed back.
__aish_ahead() {
  local line
  while IFS= builtin read -r -t 0 line; do
    builtin print -rn $'\e]133;L;k=KEY;'"$line"$'\n\a' >/dev/tty
  done </dev/tty
}
__aish_keep() {
  __aish_status=$?
  emulate -L zsh -o noxtrace
  __aish_ahead
  builtin print -n "\e]133;D;k=KEY;$__aish_status\a" >/dev/tty
  __aish_where
} 2>/dev/null
__aish_mark() {
  emulate -L zsh -o noxtrace
  PS1=$'%{\e]133;B;k=KEY\a%}' RPS1= PS2=$'%{\e]133;P;k=KEY\a%}' RPS2=
  # Exported, the marks and what proves them would be in the environment of every command.
  typeset -g +x PS1 PS2
  __aish_where
} 2>/dev/null
# Not read as a file: after one, a shell that was warned of its jobs would not be left by the next exit.
__aish_asked() { builtin eval "$(<"$__aish_folder/ask")" >|"$__aish_folder/answer" 2>/dev/null </dev/null }
__aish_ask() {
  emulate -L zsh -o noxtrace
  __aish_asked || :
  __aish_where
  builtin print -n '\e]133;Q;k=KEY\a' >/dev/tty
} 2>/dev/null
__aish_take() {
  emulate -L zsh -o noxtrace
  builtin print -rn $'\e]133;L;k=KEY;'"$BUFFER"$'\a' >/dev/tty
  BUFFER=
} 2>/dev/null
__aish_hook() {
  precmd_functions=(__aish_keep ${precmd_functions-} __aish_mark)
  preexec_functions+=(__aish_begun)
  unsetopt prompt_sp prompt_cr
  setopt hist_ignore_space
  zle -N __aish_ask
  zle -N __aish_take
  local map
  for map in emacs viins vicmd; do
    bindkey -M $map '\e[9991~' __aish_ask
    bindkey -M $map '\e[9992~' __aish_take
  done
}
__aish_interrupted() { : }
# Ctrl-C ends what runs now, not the rest of the file.
trap __aish_interrupted INT
OWN[ -f "${ZDOTDIR:-$HOME}/.zshrc" ] && . "${ZDOTDIR:-$HOME}/.zshrc"
# A substitution would show no traps: they are not inherited.
trap >|"$__aish_folder/traps"
case $(<"$__aish_folder/traps") in *__aish_interrupted*) trap - INT ;; esac
__aish_hook
# Whoever leaves at once leaves with 0.
:
