# zsh completes only what is being edited. So a line is edited, on a terminal that a copy of this shell has for itself: one key
# starts its completion, and the matches are printed as they are added. Given: __aish_line, the command.
(( $+functions[_main_complete] )) || exit
builtin zmodload zsh/zpty || exit
__aish_child() {
  # Descriptions are cut to the width there is.
  COLUMNS=500
  compadd() {
    local -a __aish_h __aish_d; local -A __aish_o; local __aish_i __aish_n
    builtin zparseopts -E -A __aish_o -- P: S: p: s: i: I: W: d: J: V: X: x: r: R: F: M: O: A: D: E: q f e n U l k a Q C 1 2
    # It only asks what would match.
    (( $+__aish_o[-O] || $+__aish_o[-A] || $+__aish_o[-D] )) && { builtin compadd "$@"; return }
    __aish_n=$__aish_o[-d]
    case $__aish_n in
      ("("*) eval "__aish_d=$__aish_n";;
      (?*) __aish_d=("${(@P)__aish_n}");;
    esac
    builtin compadd -O __aish_h -D __aish_d "$@"
    for ((__aish_i = 1; __aish_i <= $#__aish_h && __aish_i <= 2000; __aish_i++)); do
      (( $+__aish_o[-Q] )) && __aish_h[__aish_i]=${(Q)__aish_h[__aish_i]}
      builtin print -r -- "$IPREFIX$__aish_o[-P]$__aish_o[-p]$__aish_h[__aish_i]$__aish_o[-s]$__aish_o[-S]"$'\t'"${${(M)__aish_d[__aish_i]:#*-- *}#*-- }"
    done
    builtin compadd "$@"
  }
  __aish_c() { builtin print -r -- $'\n#n'; compstate[vared]=; _main_complete; builtin print -r -- '#.'; exit }
  zle -C __aish_w list-choices __aish_c
  bindkey '^I' __aish_w
  vared __aish_line
}
zpty __aish __aish_child
zpty -w -n __aish $'\t'
while zpty -r __aish __aish_l; do
  builtin print -rn -- "$__aish_l"
  [[ $__aish_l == *'#.'* ]] && break
done
zpty -d __aish
