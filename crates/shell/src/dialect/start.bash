# What a bash of ours reads at its start: the user's own file, and hooks that say what is output and what is over.
# OPEN, HOOK and FOLDER are put in. Functions come first, so that no alias of the user's gets into them.
# Marks go to the terminal itself: standard output may lead elsewhere after an exec. What calls us from outside of a function sends
# its output and errors nowhere: nothing shows of set -x, nor of a DEBUG or ERR trap of the user's. Inside, options that would end
# the shell or have the traps run are off.
__aish_folder=FOLDER
__aish_own='HOOK'
__aish_commands=()
__aish_pause=0
__aish_interrupted() { :; }
# What proves a mark that ends something is in a file: no variable and no function shows it.
__aish_say() {
  local key
  IFS= builtin read -r key <"$__aish_folder/key"
  builtin printf '\e]133;%s;k=%s;%s\a' "$1" "$key" "$2" >/dev/tty
}
# What would end a mark before its end is written by its number.
__aish_hand_back() {
  local text=${1//\%/%25}
  text=${text//$'\e'/%1b}
  __aish_say L "${text//$'\a'/%07}"
}
# What was typed ahead and that no program took would be run unseen: it is taken back while nobody reads the terminal. So the end of a
# command is said with a number, and nothing goes on before that number is in the pipe; a minute is as good as never.
__aish_end() {
  local number tries
  __aish_pause=$((__aish_pause + 1))
  __aish_say D "$1;$__aish_pause"
  for ((tries = 0; tries < 60; tries++)); do
    IFS= builtin read -r -t 1 number && [[ $number == "$__aish_pause" ]] && break
  done <>"$__aish_folder/go"
}
# While a prompt is prepared, bash forgets its jobs when it is hung up, unless it is told of them by a trap. The user's own stays.
__aish_hung_up() {
  local job IFS=$' \t\n'
  for job in $(jobs -p); do
    builtin kill -HUP -- "-$job"
    builtin kill -CONT -- "-$job"
  done
  trap - HUP
  builtin kill -HUP $$
}
__aish_over() {
  local -
  set +aeETux
  trap -p HUP >|"$__aish_folder/traps"
  [[ -s $__aish_folder/traps ]] || trap __aish_hung_up HUP
  __aish_end "$1"
}
# PROMPT_COMMAND is ours; what the user's files and lines put there is run by us, between the end of a command and the prompt.
__aish_adopt() {
  local -
  set +eETux
  [[ ${#PROMPT_COMMAND[@]} == 1 && ${PROMPT_COMMAND[0]} == "$__aish_own" ]] && return
  local command commands=()
  for command in "${PROMPT_COMMAND[@]}"; do
    case $command in
      '') ;;
      "$__aish_own") commands+=("${__aish_commands[@]}") ;;
      *"$__aish_own"*) commands+=("${__aish_commands[@]}" "${command//"$__aish_own"/:}") ;;
      *) commands+=("$command") ;;
    esac
  done
  unset PROMPT_COMMAND
  __aish_commands=("${commands[@]}") PROMPT_COMMAND=$__aish_own
}
__aish_arm() {
  local -
  set +eETux
  __aish_adopt
  PS0='\e]133;C;k=OPEN\a' PS1='\[\e]133;B;k=OPEN\a\]' PS2='\[\e]133;P;k=OPEN\a\]'
  # Exported, they would be in the environment of every command.
  builtin export -n PS0 PS1 PS2 PROMPT_COMMAND
  # Nobody is idle who reads an answer.
  [[ ${TMOUT@a} == *r* ]] || TMOUT=0
  [[ -s $__aish_folder/traps ]] || trap - HUP
}
__aish_as() { return "$1"; }
__aish_prompt() {
  local __aish_status=$? __aish_command __aish_now=("${__aish_commands[@]}")
  __aish_over "$__aish_status" || :
  # Whoever installs himself in the variable while it runs finds it as he knows it.
  __aish_adopt || :
  PROMPT_COMMAND=("${__aish_commands[@]}")
  # Each finds the status in $?, and set -e does not take that for a failure.
  for __aish_command in "${__aish_now[@]}"; do
    if ((__aish_status)); then
      __aish_as "$__aish_status" || builtin eval "$__aish_command"
    else
      :
      builtin eval "$__aish_command"
    fi
  done >/dev/tty 2>&1
  __aish_arm || :
}
# Asked for where the prompt came without its marks: after an unset PROMPT_COMMAND, say. Hooked up again, an empty line brings another
# one, with marks; bash does not look at its prompts before. A line editor within a command (read -e) gets no line of ours.
__aish_mend() {
  local - map next=end-of-line
  set +eETux
  if [[ ${PROMPT_COMMAND-} != "$__aish_own" || ${PS1-} != *OPEN* ]]; then
    __aish_arm
    next=accept-line
  fi
  for map in emacs-standard vi-insert vi-command; do
    builtin bind -m "$map" '"\e[9995~": '"$next"
  done
}
# The argument is $_, which is so again afterwards.
__aish_ask() {
  local - __aish_line
  set +eETux
  # Not by the dot: a shell that is hung up while it reads a file leaves its jobs behind.
  IFS= builtin read -r -d '' __aish_line <"$__aish_folder/ask"
  { builtin eval "$__aish_line" >|"$__aish_folder/answer" </dev/null; } || :
  __aish_say Q
}
__aish_take() {
  __aish_hand_back "$READLINE_LINE"
  READLINE_LINE= READLINE_POINT=0
}
__aish_hook() {
  local -
  set +eETux
  case $(trap -p INT) in *__aish_interrupted*) trap - INT ;; esac
  __aish_adopt
  builtin bind 'set enable-bracketed-paste on'
  local map
  for map in emacs-standard vi-insert vi-command; do
    builtin bind -m "$map" -x '"\e[9991~": { __aish_ask "$_"; } >/dev/null 2>&1'
    builtin bind -m "$map" -x '"\e[9992~": { __aish_take "$_"; } >/dev/null 2>&1'
    builtin bind -m "$map" '"\e[9993~": "\e[9994~\e[9995~"'
    builtin bind -m "$map" -x '"\e[9994~": { __aish_mend "$_"; } >/dev/null 2>&1'
  done
}
# Without these there are no marks: a shell that does not read those files takes its place.
__aish_check() {
  local -
  set +eETux
  case ${PROMPT_COMMAND@a}${PS0@a}${PS1@a}${PS2@a} in
    *r*)
      builtin printf '%s\n' 'the start-up files make PROMPT_COMMAND or a PS variable read-only: aish needs them' >/dev/tty
      builtin exit 1
      ;;
  esac
}
# Ctrl-C ends what runs now, not the rest of the files.
trap __aish_interrupted INT
OWN[ -f ~/.bashrc ] && . ~/.bashrc
{ __aish_check; } >/dev/null 2>&1
{ __aish_hook; } >/dev/null 2>&1
# Whoever leaves at once leaves with 0.
{ :; } >/dev/null 2>&1
