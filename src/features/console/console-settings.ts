// Whether there is a console, and where.
import { z } from 'zod';
import { origin, settingsGroup } from '../../runtime/settings-group.ts';

export interface ConsoleSettings {
  console: boolean;
  /** The public origin of the console, where it has a host of its own. */
  consoleUrl?: string | undefined;
}

export const consoleSettings = settingsGroup({
  variables: {
    CONSOLE: z.enum(['on', 'off']).default('on').meta({
      description: '`off`: `/console` does not exist, and nobody can log in to it',
    }),
    CONSOLE_URL: origin('https://console.example.com').optional().meta({
      description:
        'the public origin of the console if it has a host of its own, such as `https://console.example.com`: the console is then served only there, and nothing else is',
      fallback: '`BASE_URL`',
    }),
  },
  settings: (own): ConsoleSettings => ({ console: own.CONSOLE === 'on', consoleUrl: own.CONSOLE_URL }),
});

/** Returns the public origin of the console: the base URL, unless the console has a host of its own. */
export function consoleOrigin({
  consoleUrl,
  baseUrl,
}: Pick<ConsoleSettings, 'consoleUrl'> & { baseUrl: string }): string {
  return consoleUrl ?? baseUrl;
}
