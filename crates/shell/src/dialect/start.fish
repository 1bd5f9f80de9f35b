# What a fish of ours reads behind the user's own files: hooks that say what is output and what is over.
# FOLDER is put in. fish draws its prompt again whenever it likes, so the end of a command is marked by its event.
# Marks go to the terminal itself: standard output may lead elsewhere.
# What proves a mark is in a file: no variable and no function shows it.
function __aish_say
    builtin read -l __aish_key <FOLDER/key
    builtin printf '\e]133;%s;k=%s;%s\a' $argv[1] $__aish_key "$argv[2]"
end
function __aish_begun --on-event fish_preexec
    __aish_say C >/dev/tty
end
# What was typed ahead and that no program took would be run unseen: it is taken back while nobody reads the terminal. So the end of a
# command is said with a number, and nothing goes on before that number is in the pipe. Without a length, read takes what is behind a
# line with it.
function __aish_mark --on-event fish_postexec
    set -l __aish_status $status
    set -g __aish_pause (math "0$__aish_pause + 1")
    __aish_say D "$__aish_status;$__aish_pause" >/dev/tty
    while builtin read -n 20 -l __aish_number <FOLDER/go
        test "$__aish_number" = $__aish_pause; and break
    end
end
function __aish_accept
    commandline --is-valid
    switch $status
        case 0
            commandline -f execute
        case 2
            __aish_say P >/dev/tty
        case '*'
            __aish_say X >/dev/tty
    end
end
function __aish_ask
    begin
        source FOLDER/ask
    end >FOLDER/answer 2>/dev/null </dev/null
    __aish_say Q >/dev/tty
end
function __aish_take
    # What would end a mark before its end is written by its number.
    set -l text (commandline | string replace -a % %25 | string replace -a \e %1b | string replace -a \a %07 | string collect)
    __aish_say L $text >/dev/tty
    commandline ''
end
# Asked for where the prompt came without its marks. A line editor within a command is none.
function __aish_mend
    set -l __aish_status $status
    functions fish_prompt | string match -q '*__aish_say B*'; and return
    __aish_arm
    begin
        __aish_say D $__aish_status
        __aish_say B
    end >/dev/tty
end
# Before each prompt, since the user may have put one of theirs in its place, or have cleared the keys.
function __aish_arm --on-event fish_prompt
    function fish_prompt
        __aish_say B
    end
    function fish_right_prompt
    end
    function fish_mode_prompt
    end
    function fish_title
    end
    for mode in default insert
        bind -M $mode \e\[9990~ __aish_accept
        bind -M $mode \e\[9991~ __aish_ask
        bind -M $mode \e\[9992~ __aish_take
        bind -M $mode \e\[9993~ "__aish_mend 2>/dev/null"
    end
end
function fish_greeting
end
__aish_arm
# Whoever leaves at once leaves with 0.
true
