// The settings of second factors: `/guardian/factors/{factor}/…`, and the push app at `/prompts/mfa-push`. Message
// templates are in use; accounts of providers that Gatehouse does not use are stored for tools.
// docs/understand/decisions/second-factors.md#settings-of-second-factors-can-only-be-set-to-what-is-in-force
import { z } from 'zod';
import { ROAMING_SETTINGS, USER_VERIFICATIONS } from '../../../../records/users/guardian.ts';
import { type Call, callsWith, ok } from '../../call.ts';
import { deeplyMerged, type SectionDependencies, section } from '../../section.ts';

const call = callsWith<SectionDependencies>();

/** A setting, which is stored as it is sent. `defaults` are the members that it has if they were never set. */
interface Setting {
  path: string;
  name: string;
  body: z.ZodType<object>;
  defaults: object;
  /** How it is set: `PUT` replaces it, `PATCH` changes members. Default: `PUT`. */
  methods?: readonly ('PUT' | 'PATCH')[];
  noun?: string;
  /** Secret members: kept if a change leaves them out, and never returned. */
  hidden?: readonly string[];
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

const relyingParty = {
  /** The relying party is always the host of the pages. */
  overrideRelyingParty: z.literal(false, 'Passkeys are made for the host of the pages'),
  relyingPartyIdentifier: z.literal(''),
};
const ROAMING_DEFAULTS = { userVerification: 'preferred', overrideRelyingParty: false };
const roamingBody = z
  .strictObject({ ...relyingParty, userVerification: z.enum(USER_VERIFICATIONS) })
  .partial();
const apns = z.strictObject({
  sandbox: z.boolean(),
  bundle_id: text,
  enabled: z.boolean(),
  p12: z.string().max(100_000),
});

const SETTINGS: readonly Setting[] = [
  {
    path: '/guardian/factors/phone/message-types',
    name: 'phone message types',
    body: z.strictObject({
      // Terraform clears the list before it switches the factor off.
      message_types: z.array(z.enum(['sms', 'voice'])).max(2),
    }),
    defaults: { message_types: ['sms'] },
  },
  {
    path: '/guardian/factors/phone/selected-provider',
    name: 'phone provider',
    body: z.strictObject({ provider: z.enum(['auth0', 'twilio', 'phone-message-hook']) }),
    defaults: { provider: 'auth0' },
  },
  {
    path: '/guardian/factors/sms/selected-provider',
    name: 'SMS provider',
    body: z.strictObject({ provider: z.enum(['auth0', 'twilio', 'phone-message-hook']) }),
    defaults: { provider: 'auth0' },
  },
  {
    path: '/guardian/factors/push-notification/selected-provider',
    name: 'push provider',
    body: z.strictObject({ provider: z.enum(['guardian', 'sns', 'direct']) }),
    defaults: { provider: 'guardian' },
  },
  {
    path: '/guardian/factors/phone/providers/twilio',
    name: 'Twilio account of phone',
    body: twilio,
    defaults: {},
  },
  {
    path: '/guardian/factors/sms/providers/twilio',
    name: 'Twilio account of SMS',
    body: twilio,
    defaults: {},
  },
  {
    path: '/guardian/factors/push-notification/providers/sns',
    name: 'SNS account',
    body: sns,
    defaults: {},
    methods: ['PUT', 'PATCH'],
    hidden: ['aws_secret_access_key'],
  },
  {
    path: '/guardian/factors/push-notification/providers/apns',
    name: 'APNs certificate',
    body: apns.partial(),
    defaults: {},
    methods: ['PUT', 'PATCH'],
    hidden: ['p12'],
  },
  {
    path: '/guardian/factors/push-notification/providers/fcm',
    name: 'FCM key',
    body: z.strictObject({ server_key: z.string().max(10_000) }).partial(),
    defaults: {},
    methods: ['PUT', 'PATCH'],
    hidden: ['server_key'],
  },
  {
    path: '/guardian/factors/push-notification/providers/fcmv1',
    name: 'FCM credentials',
    body: z.strictObject({ server_credentials: z.string().max(10_000) }).partial(),
    defaults: {},
    methods: ['PUT', 'PATCH'],
    hidden: ['server_credentials'],
  },
  {
    path: '/guardian/factors/duo/settings',
    name: 'Duo account',
    body: z.strictObject({ ikey: text, skey: text, host: text }),
    defaults: {},
    methods: ['PUT', 'PATCH'],
  },
  {
    path: `/guardian/factors/${ROAMING_SETTINGS}`,
    name: 'security keys',
    body: roamingBody,
    defaults: ROAMING_DEFAULTS,
  },
  {
    path: '/guardian/factors/webauthn-platform/settings',
    name: 'biometrics of devices',
    body: z.strictObject(relyingParty).partial(),
    defaults: { overrideRelyingParty: false },
  },
  {
    path: '/prompts/mfa-push',
    name: 'push app',
    body: z.strictObject({ app_name: text, apple_app_link: text, google_app_link: text }),
    defaults: {},
    methods: ['PATCH'],
    noun: 'prompts',
  },
  {
    path: '/guardian/factors/phone/templates',
    name: 'phone templates',
    body: templates,
    defaults: {},
  },
  { path: '/guardian/factors/sms/templates', name: 'SMS templates', body: templates, defaults: {} },
];

const part = section('guardianSettings', z.record(z.string(), z.record(z.string(), z.unknown())));

function callsOf(setting: Setting): Call<SectionDependencies>[] {
  const {
    path,
    name,
    body: schema,
    defaults,
    methods = ['PUT'],
    noun = 'guardian_factors',
    hidden = [],
  } = setting;
  const key = path.replace('/guardian/factors/', '');
  const view = (value: Readonly<Record<string, unknown>> | undefined) =>
    value && {
      ...defaults,
      ...Object.fromEntries(Object.entries(value).filter(([member]) => !hidden.includes(member))),
    };
  return [
    call({
      method: 'GET',
      path,
      scopes: [`read:${noun}`],
      summary: `Get ${name}`,
      handle: async (deps) => ok(view((await part.read(deps))?.[key]) ?? defaults),
    }),
    ...methods.map((method) =>
      call({
        method,
        path,
        scopes: [`update:${noun}`],
        summary: `${method === 'PUT' ? 'Set' : 'Change'} ${name}`,
        body: schema,
        handle: async (deps, { body }) => {
          const { before, after } = await part.change(deps, (current) => {
            const stored = (current?.[key] ?? {}) as Readonly<Record<string, unknown>>;
            const keptMembers = Object.entries(stored).filter(
              ([member]) => method === 'PATCH' || hidden.includes(member),
            );
            return {
              ...current,
              [key]: deeplyMerged(Object.fromEntries(keptMembers), body) as Record<string, unknown>,
            };
          });
          return ok(view(after[key]), { before: view(before?.[key]), after: view(after[key]) });
        },
      }),
    ),
  ];
}

export const factorSettingCalls: Call<SectionDependencies>[] = SETTINGS.flatMap(callsOf);
