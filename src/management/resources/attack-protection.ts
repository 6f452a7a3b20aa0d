// `/attack-protection/*`: the settings of each protection.
import { z } from 'zod';
import { attackProtectionSchema } from '../../records/protection.ts';
import type { Call } from '../call.ts';
import { deeplyMerged, type SectionDependencies, section, settingsCalls } from '../section.ts';

const shields = z.array(z.string().max(64)).max(10);
const allowlist = z.array(z.string().max(64)).max(1000);
const stage = z.record(z.string(), z.record(z.string(), z.unknown()));

/** The protections that can be set, by their path; the section of the tenant file that each is. */
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
    usual: {},
  },
  'suspicious-ip-throttling': {
    member: 'suspiciousIpThrottling',
    body: z.strictObject({
      enabled: z.boolean().optional(),
      shields: shields.optional(),
      allowlist: allowlist.optional(),
      stage: stage.optional(),
    }),
    usual: {},
  },
  // Kept for tools; nothing here asks a login whether it is a robot's.
  'bot-detection': { member: 'botDetection', body: z.looseObject({}), usual: {} },
  captcha: { member: 'captcha', body: z.looseObject({}), usual: {} },
  'breached-password-detection': {
    member: 'breachedPasswordDetection',
    body: z.strictObject({
      enabled: z.boolean().optional(),
      shields: shields.optional(),
      admin_notification_frequency: shields.optional(),
      method: z.enum(['standard', 'enhanced']).optional(),
      stage: stage.optional(),
    }),
    usual: {
      enabled: false,
      shields: [],
      admin_notification_frequency: [],
      method: 'standard',
      stage: { 'pre-user-registration': { shields: [] }, 'pre-change-password': { shields: [] } },
    },
  },
} as const;

const part = section('attackProtection', attackProtectionSchema);

/** The calls of all protections. */
export const attackProtectionCalls: Call<SectionDependencies>[] = Object.entries(PROTECTIONS).flatMap(
  ([name, { member, body, usual }]) => {
    const view = (all: object | undefined) => ({
      ...usual,
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
