// What differs between the strategies of OpenID providers. Everything else is common (core.ts).
import type { JWTPayload } from 'jose';
import type { StrategyName } from '../../../records/connections/connections.ts';
import type { OpenIdOptions } from '../../../records/connections/openid.ts';
import type { RedirectStrategy, StableIdentity, UpstreamDependencies } from '../redirect.ts';
import type { SamlMetadata } from '../samlp/metadata-import.ts';
import type { Claims } from './id-token.ts';
import type { Metadata } from './metadata.ts';

export interface ProviderResponse {
  claims: Claims;
  /** The claims of the userinfo endpoint; empty if it was not used. */
  userInfo: Readonly<Record<string, unknown>>;
  /** The parameters of the authorization response, which are not signed. */
  parameters: Readonly<Record<string, string>>;
}

export interface Preset<Options extends OpenIdOptions> {
  name: StrategyName;
  /** The provider's name; absent for strategies that many providers use, whose connections are shown by their own names. */
  label?: string;
  isSocial: boolean;
  idsWithin: RedirectStrategy['idsWithin'];
  parse(options: unknown): Options;
  type: 'back_channel' | 'front_channel';
  /** The scopes of a connection whose options have none. */
  scope: string;
  /** Boolean option to scope. True adds the scope, false removes it from `scope`. */
  scopes?: Readonly<Record<string, string>>;
  /** Returns the scopes that {@link further} needs. */
  furtherScopes?(options: Options): string[];
  /**
   * Reads claims from another API of the provider, which take precedence over those of the ID token.
   * @throws AuthError by `upstreamFault`.
   */
  further?(
    deps: UpstreamDependencies,
    connection: { options: Options; metadata: Metadata },
    accessToken: string,
  ): Promise<Record<string, unknown>>;
  /**
   * Returns the issuer, or the URL of the discovery document, if the options have neither; undefined if it is unknown.
   * @throws AuthError by `upstreamFault` for a connection of another protocol.
   */
  discovery(options: Options, samlMetadata: SamlMetadata): Promise<string | undefined> | string | undefined;
  /** Whether a discovery document may have an issuer that does not match the document's address. */
  isDocumentOf?(issuer: string, address: string): boolean;
  /** Whether an ID token's issuer is accepted; by default, it must be the issuer of the metadata. */
  isIssuer?(issuer: string, claims: JWTPayload, options: Options, metadata: Metadata): boolean;
  /** `form_post` if the provider requires it. */
  responseMode?: 'form_post';
  /** Returns additional parameters of the authorization request, which neither options nor the application override. */
  parameters?(options: Options): Record<string, string>;
  /** Returns the client secret, if it is created for each request. */
  secretOf?(deps: UpstreamDependencies, options: Options, metadata: Metadata): Promise<string>;
  /** Rejects users who may not log in, though their ID token is valid. @throws AuthError by `upstreamFault`. */
  admit?(claims: Claims, options: Options): void;
  /** Returns the provider's identifier of the user; `sub` by default. @throws AuthError by `upstreamFault` if there is none. */
  idOf?(claims: Claims, options: Options): string;
  /** Returns the provider's identifier that no other account ever gets, if `idOf` returns one that others may get. */
  stableOf?(claims: Claims, options: Options): StableIdentity;
  /** Adapts the profile that was built from the claims. */
  profile?(
    profile: Record<string, unknown>,
    response: ProviderResponse,
    options: Options,
  ): Record<string, unknown>;
}
