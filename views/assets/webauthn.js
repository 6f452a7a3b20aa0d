// Asks the browser for a security key or a passkey, and posts what it gives. What it is asked for stands in the form.

const FAULTS = {
  NotAllowedError: 'cancelled',
  AbortError: 'cancelled',
  InvalidStateError: 'known',
  NotSupportedError: 'unsupported',
  ConstraintError: 'unsupported',
  SecurityError: 'refused',
};

/**
 * @param how `mediation` and `signal` of a question that waits beside the field of the address.
 * @returns the credential as JSON. @throws DOMException as WebAuthn Level 3 §5.1.3 and §5.1.4 say.
 */
async function ask({ dataset }, how = {}) {
  const { credentials } = navigator;
  const options = JSON.parse(dataset.options);
  const credential =
    dataset.webauthn === 'create'
      ? await credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) })
      : await credentials.get({
          publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options),
          ...how,
        });
  return JSON.stringify(credential);
}

function send(form, answer) {
  form.elements.code.value = answer;
  form.requestSubmit();
}

/** Has the browser offer passkeys where an address is typed, where it can (WebAuthn Level 3 §5.1.7). */
async function askInField(form, signal) {
  if ((await PublicKeyCredential.isConditionalMediationAvailable?.()) !== true) return;
  // Whoever does not choose one, or presses the button, is told nothing: there is the rest of the page.
  const answer = await ask(form, { mediation: 'conditional', signal }).catch(() => undefined);
  if (answer !== undefined) send(form, answer);
}

const isSupported = () =>
  typeof PublicKeyCredential === 'function' &&
  typeof PublicKeyCredential.parseCreationOptionsFromJSON === 'function' &&
  typeof PublicKeyCredential.parseRequestOptionsFromJSON === 'function';

function prepare(form) {
  const button = form.querySelector('button');
  const fault = document.getElementById('key-fault');
  const show = (name) => {
    fault.querySelector('p').textContent = form.dataset[name];
    fault.hidden = false;
    fault.focus();
  };
  // Beside a password nobody is told what their browser cannot.
  if (!isSupported()) return button.className === 'primary' ? show('unsupported') : undefined;
  button.hidden = form.dataset.quiet !== undefined;
  document.querySelector('[data-keys]')?.removeAttribute('hidden');
  const inField = new AbortController();
  if (form.dataset.conditional !== undefined) askInField(form, inField.signal);
  button.addEventListener('click', async (event) => {
    event.preventDefault();
    button.disabled = true;
    fault.hidden = true;
    inField.abort();
    try {
      send(form, await ask(form));
    } catch (error) {
      show(FAULTS[error.name] ?? 'failed');
      button.disabled = false;
    }
  });
  // A page that comes back from the browser's memory has a question that was answered.
  addEventListener('pageshow', ({ persisted }) => {
    if (persisted) location.reload();
  });
}

for (const form of document.querySelectorAll('form[data-webauthn]')) prepare(form);
