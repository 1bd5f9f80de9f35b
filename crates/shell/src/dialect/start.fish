# What a fish of ours reads behind the user's own files: hooks that say what is output and what is over.
# KEY and FOLDER are put in. fish draws its prompt again whenever it likes, so the end of a command is marked by its event.
# Marks go to the terminal itself: standard output may lead elsewhere.
function __aish_begun --on-event fish_preexec
    builtin printf '\e]133;C;k=KEY\a' >/dev/tty
end
function __aish_mark --on-event fish_postexec
    builtin printf '\e]133;D;k=KEY;%s\a\e]133;W;k=KEY;%s\a' $status $PWD >/dev/tty
end
function __aish_accept
    commandline --is-valid
    switch $status
        case 0
            commandline -f execute
        case 2
            builtin printf '\e]133;P;k=KEY\a' >/dev/tty
        case '*'
            builtin printf '\e]133;X;k=KEY\a' >/dev/tty
    end
end
function __aish_ask
    begin
        source FOLDER/ask
    end >FOLDER/answer 2>/dev/null </dev/null
    builtin printf '\e]133;W;k=KEY;%s\a\e]133;Q;k=KEY\a' $PWD >/dev/tty
end
function __aish_take
    builtin printf '\e]133;L;k=KEY;%s\a' (commandline | string collect) >/dev/tty
    commandline ''
end
for __aish_mode in default insert
    bind -M $__aish_mode \e\[9990~ __aish_accept
    bind -M $__aish_mode \e\[9991~ __aish_ask
    bind -M $__aish_mode \e\[9992~ __aish_take
end
set -e __aish_mode
function fish_prompt
    builtin printf '\e]133;B;k=KEY\a'
end
function fish_right_prompt
end
function fish_mode_prompt
end
function fish_greeting
end
function fish_title
end
# Whoever leaves at once leaves with 0.
true
