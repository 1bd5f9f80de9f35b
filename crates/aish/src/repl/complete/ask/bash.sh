# What bash does at Tab, done by hand in a subshell. Given: COMP_LINE and its relatives, __aish_n the name of the command, __aish_c the
# word being typed, __aish_p the one before. `compopt` works nowhere but at Tab, and is watched instead.
__aish_o=; __aish_a=(); __aish_g=(); __aish_f=; __aish_i=0
compopt() { while [[ $# -gt 0 ]]; do case $1 in -o) __aish_o+=" $2"; shift;; +o) __aish_o=${__aish_o// $2};; esac; shift; done; }
# The specification of the command, of its last part, or the one for all others.
__aish_s() { builtin complete -p -- "$__aish_n" || builtin complete -p -- "${__aish_n##*/}" || builtin complete -p -D; }
# A function may load the right specification and say with 124 that it is there now.
for __aish_t in 1 2; do
  eval "__aish_a=($(__aish_s))"
  __aish_f=; __aish_g=()
  for ((__aish_i = 1; __aish_i < ${#__aish_a[@]}; __aish_i++)); do case ${__aish_a[__aish_i]} in
    -F) __aish_f=${__aish_a[++__aish_i]};;
    -o) __aish_o+=" ${__aish_a[++__aish_i]}";;
    -[AGWPSXC]) __aish_g+=("${__aish_a[__aish_i]}" "${__aish_a[++__aish_i]}");;
    -[DEI]) ;;
    -?) __aish_g+=("${__aish_a[__aish_i]}");;
  esac; done
  [[ -n $__aish_f ]] && "$__aish_f" "$__aish_n" "$__aish_c" "$__aish_p" >/dev/null
  [[ $? -eq 124 ]] || break
done
[[ $__aish_o == *filenames* || " ${__aish_g[*]} " == *" -"[fd]" "* ]] && __aish_h='#n' || __aish_h='#t'
[[ $__aish_o == *nospace* ]] && __aish_h+=-
builtin printf '%s\n' "$__aish_h"
[[ ${#__aish_g[@]} -gt 0 ]] && builtin compgen "${__aish_g[@]}" -- "$__aish_c"
[[ ${#COMPREPLY[@]} -gt 0 ]] && builtin printf '%s\n' "${COMPREPLY[@]:0:2000}"
