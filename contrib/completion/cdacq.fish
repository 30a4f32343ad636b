# Completion of cdacq for fish. All of it comes from the tool: see src/cli/base/complete.h.
function __cdacq_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l command (string replace -r '^~' $HOME -- $words[1])
    set -l prefix (string match -r '^--[a-z-]*=' -- $words[-1])
    set -l typed (string replace -r '^--[a-z-]*=' '' -- $words[-1])
    for line in ($command __complete $words[2..-1] 2>/dev/null)
        switch $line
            case \tfiles
                for path in (__fish_complete_path $typed)
                    echo "$prefix$path"
                end
            case \tfolders
                for path in (__fish_complete_directories $typed)
                    echo "$prefix$path"
                end
            case \t'*'
            case '*'
                echo $line
        end
    end
end
complete -c cdacq -f -a '(__cdacq_complete)'
