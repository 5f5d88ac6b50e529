package oracle;

import java.time.Duration;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Flags of a command line, each -name=value. */
final class Flags {
    /** A command line that cannot be understood. */
    static final class Wrong extends RuntimeException {
        Wrong(String message) {
            super(message);
        }
    }

    private final Map<String, String> given = new LinkedHashMap<>();
    private final Set<String> known = new HashSet<>();

    Flags(List<String> arguments) {
        for (String argument : arguments) {
            int sign = argument.indexOf('=');
            if (!argument.startsWith("-") || sign < 0) {
                throw new Wrong(argument + ": found no -name=value");
            }
            given.put(argument.substring(1, sign), argument.substring(sign + 1));
        }
    }

    String text(String name, String otherwise) {
        known.add(name);
        return given.getOrDefault(name, otherwise);
    }

    String text(String name) {
        String value = text(name, null);
        if (value == null) {
            throw new Wrong("-" + name + ": missing");
        }
        return value;
    }

    long number(String name, long otherwise) {
        return Long.parseLong(text(name, Long.toString(otherwise)));
    }

    boolean isSet(String name) {
        return Boolean.parseBoolean(text(name, "false"));
    }

    /** A duration such as 500ms, 5s or 2m. */
    Duration duration(String name, String otherwise) {
        String value = text(name, otherwise);
        if (value.equals("0")) {
            return Duration.ZERO;
        }
        if (value.endsWith("ms")) {
            return Duration.ofMillis(Long.parseLong(value.substring(0, value.length() - 2)));
        }
        return Duration.parse("PT" + value.toUpperCase());
    }

    /** Refuses unknown flags. */
    void finish() {
        Set<String> unknown = new HashSet<>(given.keySet());
        unknown.removeAll(known);
        if (!unknown.isEmpty()) {
            throw new Wrong("unknown flags: " + unknown);
        }
    }
}
