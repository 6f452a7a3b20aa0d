// The options of passwordless connections, strategies `email` and `sms`.
import { z } from 'zod';
import { jointShape, secretPaths } from '../base/members.ts';
import { gateway } from '../sms-providers/gateway.ts';
import type { ConnectionSms, SmsProvider } from '../sms-providers/sms-provider.ts';
import { twilio } from '../sms-providers/twilio.ts';
import { withoutNull } from './upstream.ts';

/** E-mail domains whose users log in with the connection, if a client has several connections. */
export const domainAliases = z.array(z.string().toLowerCase()).optional();

const text = z.string().max(100_000).optional();

const parameters = z.record(z.string().max(100), z.union([z.string(), z.number(), z.boolean()]));

const members = {
  /** `totp` is the hosted service's name. It has nothing to do with RFC 6238. */
  totp: z
    .looseObject({
      /** Lifetime of a code or link, in seconds. */
      time_step: z.number().int().min(30).max(86_400).default(180),
      /** Number of digits of a code. */
      length: z.number().int().min(4).max(40).default(6),
    })
    .prefault({}),
  disable_signup: z.boolean().default(false),
  brute_force_protection: z.boolean().optional(),
  domain_aliases: domainAliases,
};

export const emailOptionsSchema = z.preprocess(
  withoutNull,
  z.looseObject({
    ...members,
    /** The message, in Liquid. Default: the built-in one. */
    email: z
      .preprocess(withoutNull, z.looseObject({ from: text, subject: text, body: text, syntax: text }))
      .optional(),
    /** Parameters of the authorization request that a link leads to, unless `/passwordless/start` sets its own. */
    authParams: z.union([z.literal(''), parameters]).optional(),
  }),
);

/** The providers of `sms` connections. The first is that of a connection that names none. */
export const SMS_PROVIDERS: readonly [SmsProvider, ...SmsProvider[]] = [twilio, gateway];

const providerMembers = SMS_PROVIDERS.map((one) => one.members);

/** The options of `sms` connections that are secrets: their paths. */
export const smsSecrets: readonly string[] = secretPaths(providerMembers);

const storedSmsOptions = z.looseObject({
  ...members,
  provider: z.enum([...SMS_PROVIDERS.map(({ name }) => name), '']).optional(),
  /** The sender, in the provider's format. */
  from: text,
  template: text,
  ...jointShape(providerMembers),
});

export const smsOptionsSchema = z.preprocess(
  withoutNull,
  storedSmsOptions.superRefine((options, context) => {
    for (const { path, message } of SMS_PROVIDERS.flatMap((one) => one.faults(options)))
      context.addIssue({ code: 'custom', path, message });
  }),
);

export function passwordlessOptions({ options }: { options: unknown }): z.output<typeof common> {
  return common.parse(withoutNull(options));
}

const common = z.looseObject({ ...members, authParams: parameters.catch({}).default({}) });

// docs/understand/decisions/passwordless-messages.md#the-sms-provider-of-an-sms-connection-is-used-if-the-process-has-none
/** Returns the provider that the options name; undefined if they name none, or lack what it needs. */
export function smsProviderOf(options: unknown): ConnectionSms | undefined {
  const parsed = z.preprocess(withoutNull, storedSmsOptions).safeParse(options).data;
  if (parsed === undefined) return undefined;
  const provider = SMS_PROVIDERS.find(({ name }) => name === parsed.provider) ?? SMS_PROVIDERS[0];
  return provider.open(parsed, parsed.from);
}
