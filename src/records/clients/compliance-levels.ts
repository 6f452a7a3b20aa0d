// The profiles for financial services that an application can comply with (`compliance_level`). Their rules are in
// compliance.ts.

/**
 * FAPI 1.0 Part 2: Advanced; FAPI-CIBA, which extends it; FAPI 2.0 Security Profile; Message Signing, which extends
 * that.
 */
export type Standard = 'fapi1' | 'ciba' | 'fapi2' | 'signing';

export interface Profile {
  standards: readonly Standard[];
  /** How the application authenticates. */
  authentication: 'private_key_jwt' | 'mtls';
  /** What its access tokens are bound to. */
  possession: 'mtls' | 'dpop';
}

/** The levels, beside `none`. */
export const PROFILES = {
  fapi1_adv_pkj_par: { standards: ['fapi1', 'ciba'], authentication: 'private_key_jwt', possession: 'mtls' },
  fapi1_adv_mtls_par: { standards: ['fapi1', 'ciba'], authentication: 'mtls', possession: 'mtls' },
  fapi2_sp_pkj_mtls: { standards: ['fapi2'], authentication: 'private_key_jwt', possession: 'mtls' },
  fapi2_sp_mtls_mtls: { standards: ['fapi2'], authentication: 'mtls', possession: 'mtls' },
  fapi2_sp_pkj_dpop: { standards: ['fapi2'], authentication: 'private_key_jwt', possession: 'dpop' },
  fapi2_sp_mtls_dpop: { standards: ['fapi2'], authentication: 'mtls', possession: 'dpop' },
  fapi2_ms_pkj_mtls: {
    standards: ['fapi2', 'signing'],
    authentication: 'private_key_jwt',
    possession: 'mtls',
  },
  fapi2_ms_mtls_mtls: { standards: ['fapi2', 'signing'], authentication: 'mtls', possession: 'mtls' },
  fapi2_ms_pkj_dpop: {
    standards: ['fapi2', 'signing'],
    authentication: 'private_key_jwt',
    possession: 'dpop',
  },
  fapi2_ms_mtls_dpop: { standards: ['fapi2', 'signing'], authentication: 'mtls', possession: 'dpop' },
} as const satisfies Readonly<Record<string, Profile>>;

type Level = keyof typeof PROFILES;

export const COMPLIANCE_LEVELS = ['none', ...(Object.keys(PROFILES) as Level[])] as const;

export const STANDARDS: Readonly<Record<Standard, string>> = {
  fapi1: 'FAPI 1.0',
  ciba: 'FAPI-CIBA',
  fapi2: 'FAPI 2.0 Security Profile',
  signing: 'FAPI 2.0 Message Signing',
};

// docs/understand/decisions/clients-keys.md#a-compliance_level-is-enforced-where-a-record-is-written
/**
 * Returns the profile of an application; undefined if it has none, null if its level is unknown, which nothing can
 * comply with.
 */
export function profileOf({
  compliance_level: level,
}: {
  readonly compliance_level?: string | null | undefined;
}): Profile | null | undefined {
  if (level === undefined || level === null || level === 'none') return undefined;
  return Object.hasOwn(PROFILES, level) ? PROFILES[level as Level] : null;
}
