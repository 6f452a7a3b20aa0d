// Authentication context classes (`acr`, OpenID Connect Core §2; SAML AuthnContext §3.4), and what a login has to prove
// for each. What it proved is in its methods (RFC 8176).

/** The class of a login with a second factor (PAPE). Applications request it with `acr_values`. */
export const MFA_POLICY = 'http://schemas.openid.net/pape/policies/2007/06/multi-factor';

type Methods = readonly string[];

const isMultiFactor = (amr: Methods) => amr.includes('mfa');

const PROOFS = {
  any: () => true,
  password: (amr: Methods) => amr.includes('pwd'),
  mfa: isMultiFactor,
  /**
   * With a password and `mfa`, `otp` is that of an authenticator app. Without a password the code may have been sent.
   */
  app_code: (amr: Methods) => isMultiFactor(amr) && amr.includes('pwd') && amr.includes('otp'),
  /** A passkey or a security key, which signs for this origin only. */
  phishing_resistant: (amr: Methods) => amr.includes('pop'),
  /** For classes that are known and never proved here. */
  never: () => false,
} as const;

type Proof = keyof typeof PROOFS;

// docs/understand/decisions/authorize.md#a-class-acr-is-stated-only-if-the-login-proved-it
/** The meanings that a tenant can give to a class of its own. */
export const CLASS_MEANINGS = ['any', 'password', 'mfa', 'phishing_resistant'] as const satisfies Proof[];

const SAML = 'urn:oasis:names:tc:SAML:2.0:ac:classes:';
export const UNSPECIFIED = `${SAML}unspecified`;
const PAPE = 'http://schemas.openid.net/pape/policies/2007/06/';

/** The classes whose meaning is public. Every connection uses TLS. */
const KNOWN: ReadonlyMap<string, Proof> = new Map([
  ['0', 'any'],
  [UNSPECIFIED, 'any'],
  [`${SAML}PasswordProtectedTransport`, 'password'],
  [`${SAML}Password`, 'password'],
  [MFA_POLICY, 'mfa'],
  ['https://refeds.org/profile/mfa', 'mfa'],
  [`${SAML}TimeSyncToken`, 'app_code'],
  // OpenID Connect Extended Authentication Profile (EAP) ACR Values 1.0.
  ['phr', 'phishing_resistant'],
  [`${PAPE}phishing-resistant`, 'phishing_resistant'],
  // Hardware that protects a key and a registered contract are not checked.
  ['phrh', 'never'],
  [`${PAPE}multi-factor-physical`, 'never'],
  [`${SAML}MobileTwoFactorContract`, 'never'],
]);

/** Returns whether a login meets a class with a public meaning; undefined for any other class. */
export function meetsKnownClass(name: string, amr: Methods): boolean | undefined {
  const proof = KNOWN.get(name);
  return proof && PROOFS[proof](amr);
}

/** Whether a class with a public meaning needs a second factor. */
export const needsFactor = (name: string): boolean => isOfFactor(KNOWN.get(name));

const isOfFactor = (proof: Proof | undefined) => proof === 'mfa' || proof === 'app_code';

interface ClassSettings {
  readonly acr_values_supported?: readonly string[] | null | undefined;
  readonly acr_value_meanings?: Readonly<Record<string, (typeof CLASS_MEANINGS)[number]>> | undefined;
}

/** The context classes that applications of a tenant can request. */
export interface AuthenticationClasses {
  /** Those that some login can reach, as the metadata lists them. */
  supported: readonly string[];
  /** Whether a login meets a class. Others than the supported ones are never met. */
  isMet(name: string, amr: Methods): boolean;
  /** Whether a supported class needs a second factor. */
  needsFactor(name: string): boolean;
}

/** Returns the classes of a tenant: those that it lists and whose meaning is known, and the one of a second factor. */
export function authenticationClasses(settings: ClassSettings): AuthenticationClasses {
  const { acr_values_supported: listed, acr_value_meanings: own = {} } = settings;
  const proofs = new Map<string, Proof>();
  for (const name of [MFA_POLICY, ...(listed ?? [])]) {
    // A tenant cannot lower what a public name means to everybody.
    const proof = KNOWN.get(name) ?? (Object.hasOwn(own, name) ? own[name] : undefined);
    if (proof !== undefined && proof !== 'never') proofs.set(name, proof);
  }
  return {
    supported: [...proofs.keys()],
    isMet: (name, amr) => PROOFS[proofs.get(name) ?? 'never'](amr),
    needsFactor: (name) => isOfFactor(proofs.get(name)),
  };
}

/** Returns a warning for each class that a tenant lists and no login can reach. */
export function classWarnings(settings: ClassSettings): string[] {
  const { supported } = authenticationClasses(settings);
  return (settings.acr_values_supported ?? [])
    .filter((name) => !supported.includes(name))
    .map(
      (name) =>
        `tenant.acr_values_supported: ${name} is not announced, because no login proves it: tenant.acr_value_meanings says what a class of your own means`,
    );
}
