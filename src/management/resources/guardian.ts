// The second factor's settings: `/guardian/*`.
import { z } from 'zod';
import { guardianFactorsSchema, guardianPoliciesSchema } from '../../records/guardian.ts';
import { type Call, callsWith, noContent, ok } from '../call.ts';
import { apiError } from '../errors.ts';
import { deeplyMerged, type SectionDependencies, section } from '../section.ts';

const call = callsWith<SectionDependencies>();

/** In the order of the hosted service's list. */
const FACTORS = [
  'push-notification',
  'sms',
  'email',
  'duo',
  'otp',
  'webauthn-roaming',
  'webauthn-platform',
  'recovery-code',
] as const;

const READ = ['read:guardian_factors'];
const UPDATE = ['update:guardian_factors'];

function factorCalls(): Call<SectionDependencies>[] {
  const part = section('guardianFactors', guardianFactorsSchema);
  return [
    call({
      method: 'GET',
      path: '/guardian/factors',
      scopes: READ,
      summary: 'Get factors',
      handle: async (deps) => {
        const set = (await part.read(deps)) ?? [];
        return ok(
          FACTORS.map((name) => ({
            name,
            enabled: set.some((factor) => factor.name === name && factor.enabled),
            trial_expired: false,
          })),
        );
      },
    }),
    call({
      method: 'PUT',
      path: '/guardian/factors/:name',
      scopes: UPDATE,
      summary: 'Switch a factor on or off',
      body: z.strictObject({ enabled: z.boolean() }),
      handle: async (deps, { params, body }) => {
        const name = FACTORS.find((factor) => factor === params.name);
        if (name === undefined)
          throw apiError(400, 'Path validation error: unknown factor on property name.', 'invalid_uri');
        const switched = { name, enabled: body.enabled };
        const { before, after } = await part.change(deps, (current = []) =>
          current.some((factor) => factor.name === name)
            ? current.map((factor) => (factor.name === name ? { ...factor, ...switched } : factor))
            : [...current, switched],
        );
        return ok({ enabled: body.enabled }, { before, after });
      },
    }),
  ];
}

const policies = z.array(z.enum(['all-applications', 'confidence-score'])).max(1);

function policyCalls(): Call<SectionDependencies>[] {
  const part = section('guardianPolicies', guardianPoliciesSchema);
  return [
    call({
      method: 'GET',
      path: '/guardian/policies',
      scopes: ['read:mfa_policies'],
      summary: 'Get policies',
      handle: async (deps) => ok(((await part.read(deps)) ?? []).filter((policy) => policy !== 'never')),
    }),
    call({
      method: 'PUT',
      path: '/guardian/policies',
      scopes: ['update:mfa_policies'],
      summary: 'Set policies',
      body: policies,
      handle: async (deps, { body }) => {
        const { before, after } = await part.change(deps, () => body);
        return ok(after, { before, after });
      },
    }),
  ];
}

/** What a factor is set up with, kept as it is sent; `usual` is answered where nothing was set. */
interface Setting {
  path: string;
  name: string;
  body: z.ZodType<object>;
  usual: object | undefined;
}

const text = z.string().max(2048).nullish();
const twilio = z.strictObject({ from: text, messaging_service_sid: text, auth_token: text, sid: text });
const templates = z.strictObject({
  enrollment_message: z.string().max(1000),
  verification_message: z.string().max(1000),
});
const sns = z.strictObject({
  aws_access_key_id: text,
  aws_secret_access_key: text,
  aws_region: text,
  sns_apns_platform_application_arn: text,
  sns_gcm_platform_application_arn: text,
});

const SETTINGS: readonly Setting[] = [
  {
    path: '/guardian/factors/phone/message-types',
    name: 'phone message types',
    body: z.strictObject({
      message_types: z
        .array(z.enum(['sms', 'voice']))
        .min(1)
        .max(2),
    }),
    usual: { message_types: ['sms'] },
  },
  {
    path: '/guardian/factors/phone/selected-provider',
    name: 'phone provider',
    body: z.strictObject({ provider: z.enum(['auth0', 'twilio', 'phone-message-hook']) }),
    usual: { provider: 'auth0' },
  },
  {
    path: '/guardian/factors/sms/selected-provider',
    name: 'SMS provider',
    body: z.strictObject({ provider: z.enum(['auth0', 'twilio', 'phone-message-hook']) }),
    usual: { provider: 'auth0' },
  },
  {
    path: '/guardian/factors/push-notification/selected-provider',
    name: 'push provider',
    body: z.strictObject({ provider: z.enum(['guardian', 'sns', 'direct']) }),
    usual: { provider: 'guardian' },
  },
  {
    path: '/guardian/factors/phone/providers/twilio',
    name: 'Twilio account of phone',
    body: twilio,
    usual: {},
  },
  { path: '/guardian/factors/sms/providers/twilio', name: 'Twilio account of SMS', body: twilio, usual: {} },
  { path: '/guardian/factors/push-notification/providers/sns', name: 'SNS account', body: sns, usual: {} },
  { path: '/guardian/factors/phone/templates', name: 'phone templates', body: templates, usual: undefined },
  { path: '/guardian/factors/sms/templates', name: 'SMS templates', body: templates, usual: undefined },
];

function settingCalls(): Call<SectionDependencies>[] {
  const all = z.record(z.string(), z.record(z.string(), z.unknown()));
  const part = section('guardianSettings', all);
  return SETTINGS.flatMap(({ path, name, body: schema, usual }) => {
    const key = path.slice('/guardian/factors/'.length);
    return [
      call({
        method: 'GET',
        path,
        scopes: READ,
        summary: `Get ${name}`,
        handle: async (deps) => {
          const value = (await part.read(deps))?.[key] ?? usual;
          return value === undefined ? noContent() : ok(value);
        },
      }),
      call({
        method: 'PUT',
        path,
        scopes: UPDATE,
        summary: `Set ${name}`,
        body: schema,
        handle: async (deps, { body }) => {
          const { before, after } = await part.change(deps, (current) => ({
            ...current,
            [key]: deeplyMerged({}, body) as Record<string, unknown>,
          }));
          return ok(after[key], { before: before?.[key], after: after[key] });
        },
      }),
    ];
  });
}

/** All calls of the second factor's settings. */
export const guardianCalls: Call<SectionDependencies>[] = [
  ...factorCalls(),
  ...policyCalls(),
  ...settingCalls(),
];
