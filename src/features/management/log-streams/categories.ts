// The filter categories of log streams, and the event types in each.

/** Event types by category; `other` has all types that are not listed. */
const TYPES: Readonly<Record<string, readonly string[]>> = {
  'auth.login.fail': ['f', 'fp', 'fu', 'fcoa', 'gd_auth_failed', 'gd_auth_rejected', 'gd_recovery_failed'],
  'auth.login.notification': ['mfar', 'limit_wc', 'limit_mu', 'gd_otp_rate_limit_exceed', 'pwd_leak'],
  'auth.login.success': ['s', 'scoa', 'gd_auth_succeed', 'gd_recovery_succeed'],
  'auth.logout.fail': ['flo', 'oidc_backchannel_logout_failed'],
  'auth.logout.success': ['slo', 'oidc_backchannel_logout_succeeded'],
  'auth.signup.fail': ['fs', 'signup_pwd_leak'],
  'auth.signup.success': ['ss'],
  'auth.silent_auth.fail': ['fsa'],
  'auth.silent_auth.success': ['ssa'],
  'auth.token_exchange.fail': [
    'feacft',
    'feccft',
    'feoobft',
    'feotpft',
    'fepft',
    'fepotpft',
    'fercft',
    'ferrt',
    'fertft',
    'fecte',
    'failed_on_behalf_of_token_exchange',
  ],
  'auth.token_exchange.success': [
    'seacft',
    'seccft',
    'seoobft',
    'seotpft',
    'sepft',
    'sercft',
    'sertft',
    'secte',
    'success_on_behalf_of_token_exchange',
  ],
  'management.fail': ['fapi'],
  'management.success': ['sapi'],
  'scim.event': [],
  'system.notification': [],
  'user.fail': ['fcp', 'fcpr', 'fv', 'fvr', 'fn'],
  'user.notification': ['cls', 'cs', 'scpr', 'svr', 'gd_send_email', 'gd_send_sms'],
  'user.success': ['scp', 'sdu', 'sv', 'gd_start_enroll', 'gd_enrollment_complete', 'gd_unenroll'],
  actions: [],
};

export const CATEGORIES = [...Object.keys(TYPES), 'other'];

const LISTED_TYPES = new Set(Object.values(TYPES).flat());

/** Whether a stream sends events of a type. A stream without filters sends all. */
export function includesType(
  filters: readonly { readonly name?: unknown }[] | undefined,
  type: string,
): boolean {
  if (filters === undefined || filters.length === 0) return true;
  return filters.some(({ name }) => {
    if (name === 'other') return !LISTED_TYPES.has(type);
    return typeof name === 'string' && (TYPES[name]?.includes(type) ?? false);
  });
}
