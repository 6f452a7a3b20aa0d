// `/attack-protection/*`: the settings of each protection.
import { z } from 'zod';
import { attackProtectionSchema } from '../../../../records/tenant/protection.ts';
import type { Call } from '../../call.ts';
import { deeplyMerged, isObject, type SectionDependencies, section, settingsCalls } from '../../section.ts';

const shields = z.array(z.string().max(64)).max(10);
const allowlist = z.array(z.string().max(64)).max(1000);
const policy = z.enum(['never', 'when_risky', 'always']).optional();
const addresses = z.array(z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()])).max(1000);
const text = z.string().min(1).max(512);
const captcha = z.strictObject({ site_key: text, secret: text }).optional();

// docs/understand/decisions/management-api.md#captcha-providers-and-bot-detection-are-stored-but-not-the-providers-secrets
/**
 * CAPTCHA settings, which are accepted and not used. Secrets of the providers are accepted, as tools send them, and
 * not stored: nothing would use them, and the hosted service never returns them.
 */
const captchaBody = z
  .strictObject({
    active_provider_id: z
      .enum([
        ...(['arkose', 'auth_challenge', 'friendly_captcha', 'hcaptcha'] as const),
        ...(['recaptcha_v2', 'recaptcha_enterprise', 'simple_captcha'] as const),
      ])
      .optional(),
    simple_captcha: z.strictObject({}).optional(),
    auth_challenge: z.strictObject({ fail_open: z.boolean() }).optional(),
    recaptcha_v2: captcha,
    recaptcha_enterprise: z.strictObject({ site_key: text, api_key: text, project_id: text }).optional(),
    hcaptcha: captcha,
    friendly_captcha: captcha,
    arkose: z
      .strictObject({
        site_key: text,
        secret: text,
        client_subdomain: text.optional(),
        verify_subdomain: text.optional(),
        fail_open: z.boolean().optional(),
      })
      .optional(),
  })
  .transform((body) =>
    Object.fromEntries(Object.entries(body).map(([name, member]) => [name, withoutSecrets(member)])),
  );

/** Returns the settings of a provider without its secrets. */
function withoutSecrets(member: unknown): unknown {
  if (!isObject(member)) return member;
  const { secret: _, api_key: __, ...rest } = member;
  return rest;
}

const stage = z.record(z.string(), z.record(z.string(), z.unknown()));

/** The protections, by path: the member of the tenant file's section, the body, and the defaults. */
const PROTECTIONS = {
  'brute-force-protection': {
    member: 'bruteForceProtection',
    body: z.strictObject({
      enabled: z.boolean().optional(),
      shields: shields.optional(),
      allowlist: allowlist.optional(),
      mode: z.enum(['count_per_identifier_and_ip', 'count_per_identifier']).optional(),
      max_attempts: z.number().int().min(1).max(100).optional(),
    }),
    defaults: {},
  },
  'suspicious-ip-throttling': {
    member: 'suspiciousIpThrottling',
    body: z.strictObject({
      enabled: z.boolean().optional(),
      shields: shields.optional(),
      allowlist: allowlist.optional(),
      stage: stage.optional(),
    }),
    defaults: {},
  },
  // Stored for tools. Bots are not detected.
  'bot-detection': {
    member: 'botDetection',
    body: z.strictObject({
      bot_detection_level: z.enum(['low', 'medium', 'high']).optional(),
      challenge_password_policy: policy,
      challenge_passwordless_policy: policy,
      challenge_password_reset_policy: policy,
      allowlist: addresses.optional(),
      monitoring_mode_enabled: z.boolean().optional(),
    }),
    defaults: {
      challenge_password_policy: 'never',
      challenge_passwordless_policy: 'never',
      challenge_password_reset_policy: 'never',
      allowlist: [],
      bot_detection_level: 'medium',
      monitoring_mode_enabled: false,
    },
  },
  captcha: {
    member: 'captcha',
    body: captchaBody,
    defaults: {
      active_provider_id: 'auth_challenge',
      simple_captcha: {},
      auth_challenge: { fail_open: false },
    },
  },
  'breached-password-detection': {
    member: 'breachedPasswordDetection',
    body: z.strictObject({
      enabled: z.boolean().optional(),
      shields: shields.optional(),
      admin_notification_frequency: shields.optional(),
      method: z.enum(['standard', 'enhanced']).optional(),
      stage: stage.optional(),
    }),
    defaults: {
      enabled: false,
      shields: [],
      admin_notification_frequency: [],
      method: 'standard',
      stage: { 'pre-user-registration': { shields: [] }, 'pre-change-password': { shields: [] } },
    },
  },
} as const;

const part = section('attackProtection', attackProtectionSchema);

export const attackProtectionCalls: Call<SectionDependencies>[] = Object.entries(PROTECTIONS).flatMap(
  ([name, { member, body, defaults }]) => {
    const view = (all: object | undefined) => ({
      ...defaults,
      ...(all as Record<string, object> | undefined)?.[member],
    });
    return settingsCalls(part, {
      path: `/attack-protection/${name}`,
      noun: 'attack_protection',
      name,
      body,
      view,
      change: (current, changes) => deeplyMerged(current, { [member]: deeplyMerged(view(current), changes) }),
    });
  },
);
