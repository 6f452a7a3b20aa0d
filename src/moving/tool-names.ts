// Names that the hosted service's deploy tool knows, where it refuses others.

export const TOOL_NAMES = {
  attackProtection: new Set([
    'botDetection',
    'breachedPasswordDetection',
    'bruteForceProtection',
    'captcha',
    'suspiciousIpThrottling',
  ]),
  emailTemplates: new Set([
    ...['verify_email', 'verify_email_by_code', 'reset_email', 'reset_email_by_code', 'welcome_email'],
    ...['blocked_account', 'stolen_credentials', 'enrollment_email', 'change_password', 'password_reset'],
    ...['mfa_oob_code', 'user_invitation', 'async_approval'],
  ]),
  pages: new Set(['guardian_multifactor', 'password_reset', 'login', 'error_page']),
  phoneTemplates: new Set([
    'otp_verify',
    'otp_enroll',
    'change_password',
    'blocked_account',
    'password_breach',
  ]),
  ruleStages: new Set(['login_success', 'login_failure', 'pre_authorize']),
  /** Signals of network ACLs. */
  signals: new Set([
    ...['asns', 'auth0_managed', 'geo_country_codes', 'geo_subdivision_codes', 'ipv4_cidrs', 'ipv6_cidrs'],
    ...['ja3_fingerprints', 'ja4_fingerprints', 'user_agents', 'hostnames', 'connecting_ipv4_cidrs'],
    'connecting_ipv6_cidrs',
  ]),
  /** Types of custom domains. */
  domainTypes: new Set(['auth0_managed_certs', 'self_managed_certs']),
} as const satisfies Readonly<Record<string, ReadonlySet<string>>>;

/** The members of a theme, by group; the tool wants all of them. */
export const THEME: Readonly<Record<string, readonly string[]>> = {
  borders: [
    ...['button_border_radius', 'button_border_weight', 'buttons_style', 'input_border_radius'],
    ...['input_border_weight', 'inputs_style', 'show_widget_shadow', 'widget_border_weight'],
    'widget_corner_radius',
  ],
  colors: [
    ...['body_text', 'error', 'header', 'icons', 'input_background', 'input_border', 'input_filled_text'],
    ...['input_labels_placeholders', 'links_focused_components', 'primary_button', 'primary_button_label'],
    ...['secondary_button_border', 'secondary_button_label', 'success', 'widget_background', 'widget_border'],
  ],
  fonts: [
    ...['body_text', 'buttons_text', 'font_url', 'input_labels', 'links', 'links_style'],
    ...['reference_text_size', 'subtitle', 'title'],
  ],
  page_background: ['background_color', 'background_image_url', 'page_layout'],
  widget: [...['header_text_alignment', 'logo_height', 'logo_position', 'logo_url', 'social_buttons_layout']],
};

/** Sections that only the tool and the hosted service know, which a tenant may have brought. */
export const TOOL_SECTIONS: ReadonlySet<string> = new Set([
  ...[
    'connectionProfiles',
    'eventStreams',
    'flowVaultConnections',
    'flows',
    'forms',
    'guardianFactorProviders',
  ],
  ...[
    'guardianPhoneFactorSelectedProvider',
    'hooks',
    'phoneProviders',
    'rateLimitPolicies',
    'riskAssessment',
  ],
  ...['selfServiceProfiles', 'supplementalSignals', 'userAttributeProfiles'],
]);
