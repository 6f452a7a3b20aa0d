// Which parameters count as credentials: they are not passed on to providers, and actions do not see them.
import { expect } from 'chai';
import { isCredentialName } from '../../src/http/server/application.ts';
import { OWN_PARAMETERS } from '../../src/server/features.ts';

/** The parameters of our endpoints that are no credentials. A new parameter must be added here, or be named as a credential. */
const OPEN =
  `SigAlg RelayState acr_values actor_token_type allow_signup application_type audience auth0Client authParams authenticator_id
  authenticator_types authorization_details binding_message challenge_type claims client_assertion_type client_id client_name client_uri
  code_challenge code_challenge_method connection connection_scope credential_type delivery_method display dpop_jkt email
  family_name federated given_name grant_type grant_types id_token_signed_response_alg invitation jwks jwks_uri login_hint logo_uri logout_hint max_age metadata name nickname nonce
  oob_channels organization phone_number picture post_logout_redirect_uri prompt realm redirect_uri redirect_uris rel request_uris requested_expiry
  requested_token_type resource response_mode response_type response_types returnTo scope screen_hint send state sub_id subject_type
  request_object_signing_alg subject_token_type token_endpoint_auth_method token_type_hint ui_locales user_metadata user_profile userinfo_signed_response_alg username`.split(
    /\s+/,
  );

describe('the names of parameters', () => {
  it('of our endpoints are those of credentials, or known to be none', () => {
    const open = [...OWN_PARAMETERS].filter((name) => !isCredentialName(name));
    expect(open.filter((name) => !OPEN.includes(name))).to.deep.equal([]);
  });

  for (const name of [
    'userPassword',
    'X-Api-Key',
    'sms_code',
    'Passcode',
    'refreshToken',
    'SAMLResponse',
    'id_token',
  ])
    it(`are those of credentials in any spelling: ${name}`, () => {
      expect(isCredentialName(name)).to.equal(true);
    });

  for (const name of [
    'token_access_type',
    'country_code',
    'promo_code',
    'passenger',
    'tokens_left',
    'keyboard',
  ])
    it(`are not those of credentials if they only resemble one: ${name}`, () => {
      expect(isCredentialName(name)).to.equal(false);
    });
});
