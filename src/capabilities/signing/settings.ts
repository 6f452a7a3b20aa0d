// Where the signing keys are.
import { z } from 'zod';
import { isCallable } from '../../http/outbound.ts';
import { settingsGroup } from '../../runtime/settings-group.ts';

export interface SigningSettings {
  signing:
    | { kind: 'local' }
    /** The program and its first arguments. */
    | { kind: 'command'; command: readonly string[] }
    | { kind: 'http'; url: string; secret: string };
}

/** The settings that each place requires, in the order in which they are reported. */
const NEEDS = {
  local: [],
  command: ['SIGNING_COMMAND'],
  http: ['SIGNING_URL', 'SIGNING_SECRET'],
} as const;

export const signingSettings = settingsGroup({
  variables: {
    SIGNING: z.enum(['local', 'command', 'http']).default('local').meta({
      description:
        'where the signing keys are: `local` in the store, the others outside it; see [keys.md](keys.md)',
    }),
    SIGNING_COMMAND: z.string().optional().meta({
      description: 'with `SIGNING=command`: the program and its first arguments, separated by spaces',
    }),
    SIGNING_URL: z
      .string()
      .refine(
        isCallable,
        'must be an https address without user and password, or an http one that OUTBOUND_ALLOW opens',
      )
      .optional()
      .meta({ description: 'with `SIGNING=http`: the address of the signing service' }),
    SIGNING_SECRET: z.string().min(22).optional().meta({
      isSecret: true,
      description: 'with `SIGNING=http`: the bearer token for the service, at least 22 characters',
    }),
  },
  faults: (own) =>
    NEEDS[own.SIGNING]
      .filter((name) => own[name] === undefined)
      .map((name) => `${name}: required with SIGNING=${own.SIGNING}`),
  settings: ({
    SIGNING: kind,
    SIGNING_COMMAND = '',
    SIGNING_URL: url = '',
    SIGNING_SECRET: secret = '',
  }): SigningSettings => {
    switch (kind) {
      case 'local':
        return { signing: { kind } };
      case 'command':
        return { signing: { kind, command: SIGNING_COMMAND.split(' ').filter((part) => part !== '') } };
      case 'http':
        return { signing: { kind, url, secret } };
    }
  },
});
