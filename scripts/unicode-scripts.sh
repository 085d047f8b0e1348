#!/usr/bin/env bash
# The table of interpreter/ops/string/unicode_script.c: code point ranges from Perl's Unicode data, numbers from ICU's header
# (Debian's perl and libicu-dev). Prints "{ first, last, script }," lines.
set -euo pipefail
header=${1:-/usr/include/unicode/uscript.h}
perl -MUnicode::UCD=prop_invmap -e '
    my %code;
    open my $in, "<", shift or die;
    while (<$in>) { $code{$1} = $2 if /USCRIPT_([A-Z0-9_]+)\s*=\s*(\d+)/ }
    my %other = (TAI_THAM => "LANNA", OLD_TURKIC => "ORKHON", MEETEI_MAYEK => "MEITEI_MAYEK", MENDE_KIKAKUI => "MENDE",
        SIGNWRITING => "SIGN_WRITING");
    $code{$_} //= $code{$other{$_}} for keys %other;
    my ($first, $script) = prop_invmap("Script");
    my ($from, $last, $number);
    for my $i (0 .. $#$first) {
        my $end = $i < $#$first ? $first->[$i + 1] - 1 : 0x10ffff;
        my $n = $code{uc $script->[$i]} // die "no number for $script->[$i]";
        next if $first->[$i] > 0x10ffff || $script->[$i] eq "Unknown";
        if (defined $from && $number == $n && $last + 1 == $first->[$i]) { $last = $end; next }
        print "{ $from, $last, $number },\n" if defined $from;
        ($from, $last, $number) = ($first->[$i], $end, $n);
    }
    print "{ $from, $last, $number },\n";
' "$header"
