// What actions may ask for: the methods of `api` by trigger, and what is taken of what they recorded.
import { z } from 'zod';
import type { Trigger } from '../records/actions.ts';

/** What all actions of a trigger asked for together. */
export interface ActionOutcome {
  /** Why it is refused; no action ran after the one that said so. `error` where it is not `access_denied`. */
  denied?: { code?: string; reason: string; userMessage?: string; error?: 'unauthorized' };
  /** Claims, by name; those of the protocol are for the caller to refuse. */
  idToken: Record<string, unknown>;
  accessToken: Record<string, unknown>;
  /** Members of the metadata, null for one that goes. */
  userMetadata: Record<string, unknown>;
  appMetadata: Record<string, unknown>;
  /** A second factor has to be given. */
  multifactor: boolean;
}

/** Nothing was asked for. */
export function nothingAsked(): ActionOutcome {
  return {
    idToken: {},
    accessToken: {},
    userMetadata: {},
    appMetadata: {},
    multifactor: false,
  };
}

const METADATA = ['user.setUserMetadata', 'user.setAppMetadata'] as const;

/** The methods of `api`, by trigger; `cache` is there for all. */
export const METHODS: Record<Trigger, readonly (keyof typeof TAKE)[]> = {
  'post-login': [
    'access.deny',
    'idToken.setCustomClaim',
    'accessToken.setCustomClaim',
    'multifactor.enable',
    ...METADATA,
  ],
  'credentials-exchange': ['access.deny', 'accessToken.setCustomClaim'],
};

const name = z.string().min(1).max(255);
const text = z.string().max(1000);

/** The value of a member; what cannot be written as JSON was left out on the way here. */
const value = z.unknown().transform((one) => one ?? null);

function taking<T extends z.ZodType>(
  args: T,
  apply: (outcome: ActionOutcome, args: z.output<T>) => void,
): (outcome: ActionOutcome, given: unknown) => boolean {
  return (outcome, given) => {
    const read = args.safeParse(given);
    if (read.success) apply(outcome, read.data);
    return read.success;
  };
}

const pair = z.tuple([name, value]).rest(z.unknown());

const member = (of: 'idToken' | 'accessToken' | 'userMetadata' | 'appMetadata') =>
  taking(pair, (outcome, [key, given]) => {
    Object.defineProperty(outcome[of], key, {
      value: given,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  });

/** What each method does; false for arguments that it does not take. */
const TAKE = {
  // `deny(reason)`, and `deny(code, message)` where users are told of it.
  'access.deny': taking(z.tuple([text]).rest(z.unknown()), (outcome, [first, second]) => {
    outcome.denied ??=
      typeof second === 'string'
        ? { code: first, reason: second.slice(0, 1000), userMessage: second.slice(0, 1000) }
        : { reason: first };
  }),
  'idToken.setCustomClaim': member('idToken'),
  'accessToken.setCustomClaim': member('accessToken'),
  'user.setUserMetadata': member('userMetadata'),
  'user.setAppMetadata': member('appMetadata'),
  'multifactor.enable': taking(z.array(z.unknown()), (outcome, [asked]) => {
    if (asked !== 'none') outcome.multifactor = true;
  }),
};

/** Commands as they were recorded in the sandbox: anything. */
export const commandsSchema = z.array(z.object({ method: z.string(), args: z.array(z.unknown()) })).max(1000);

export type Command = z.output<typeof commandsSchema>[number];

/**
 * Takes a command.
 * @returns false for a method that the trigger does not have, and for arguments that it does not take.
 */
export function takeCommand(trigger: Trigger, outcome: ActionOutcome, { method, args }: Command): boolean {
  const known = METHODS[trigger].find((one) => one === method);
  return known !== undefined && TAKE[known](outcome, args);
}
