package authz

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A browser keeps the caller's token in a cookie that scripts and other sites cannot use. The prefix __Host- makes
// browsers refuse a cookie that was set without TLS or by another host (RFC 6265bis, section 4.1.3.2).
const (
	sessionCookie = "__Host-headgate"
	loginCookie   = "__Host-headgate-login" // state, nonce and PKCE verifier of a login in progress
	loginSeconds  = 600                     // time limit of a login
	maxToken      = 3800                    // bytes: browsers keep cookies of 4096 with name and attributes
)

// callback is the path to which the issuer redirects browsers.
const callback = "/login/oidc/callback"

// tokenOf returns the token of a request, from its header or else its cookie.
func tokenOf(r *http.Request) (string, bool) {
	if bearer, ok := bearerOf(map[string][]string{"authorization": r.Header["Authorization"]}); ok {
		return bearer, true
	}
	c, err := r.Cookie(sessionCookie)
	if err != nil {
		return "", false
	}
	return c.Value, true
}

// holder returns the identity that a token proves.
func (a *Authorizer) holder(ctx context.Context, c Caller, token string) (Identity, error) {
	p := a.inForce()
	if id, ok := p.static(token); ok {
		return id, nil
	}
	if p.oidc == nil {
		return Identity{}, errors.New("the token is not known")
	}
	if err := a.limit(c, Metrics); err != nil {
		return Identity{}, err
	}
	id, _, err := p.oidc.verify(ctx, token)
	return id, err
}

func (a *Authorizer) inForce() *policy {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.policy
}

// Login serves browser logins. GET /login lists in JSON the ways to log in, POST /login takes a token, and POST
// /logout forgets it. GET /login/oidc redirects to the policy's issuer (OpenID Connect's authorization code flow with
// PKCE, RFC 7636, for a public client whose id is the policy's oidc.audience).
func (a *Authorizer) Login() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /login", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_, err := r.Cookie(sessionCookie)
		_ = json.NewEncoder(w).Encode(map[string]bool{"token": r.TLS != nil, "oidc": r.TLS != nil && a.inForce().oidc != nil, "inside": err == nil})
	})
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 2*maxToken)
		if code, err := a.enter(w, r, strings.TrimSpace(r.PostFormValue("token"))); err != nil {
			http.Error(w, err.Error(), code)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /logout", func(w http.ResponseWriter, _ *http.Request) {
		setCookie(w, sessionCookie, "", http.SameSiteStrictMode, -1)
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /login/oidc", func(w http.ResponseWriter, r *http.Request) {
		conf, _, code, err := a.client(r)
		if err != nil {
			http.Error(w, err.Error(), code)
			return
		}
		state, nonce, verifier := oauth2.GenerateVerifier(), oauth2.GenerateVerifier(), oauth2.GenerateVerifier()
		// The issuer's redirect is a request from another site. Browsers send no Strict cookie with such a request.
		setCookie(w, loginCookie, strings.Join([]string{state, nonce, verifier}, "."), http.SameSiteLaxMode, loginSeconds)
		http.Redirect(w, r, conf.AuthCodeURL(state, oidc.Nonce(nonce), oauth2.S256ChallengeOption(verifier)), http.StatusFound)
	})
	mux.HandleFunc("GET "+callback, func(w http.ResponseWriter, r *http.Request) {
		if code, err := a.finish(w, r); err != nil {
			http.Error(w, err.Error(), code)
			return
		}
		// A redirect would still count as the issuer's request, and would come without the cookie.
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		fmt.Fprint(w, `<!doctype html><meta http-equiv="refresh" content="0; url=/"><title>Headgate</title><a href="/">Headgate</a>`)
	})
	return http.NewCrossOriginProtection().Handler(mux) // no other site's form logs a browser in or out
}

// enter logs the holder of a token in, if the holder may see the page.
func (a *Authorizer) enter(w http.ResponseWriter, r *http.Request, token string) (int, error) {
	c := Caller{Address: r.RemoteAddr}
	switch {
	case r.TLS == nil:
		return http.StatusForbidden, errors.New("a token is a secret: want TLS")
	case len(token) > maxToken:
		return http.StatusBadRequest, fmt.Errorf("the token has %d bytes: want at most %d, which a cookie can hold", len(token), maxToken)
	}
	if err := a.limit(c, Metrics); err != nil {
		return http.StatusTooManyRequests, errors.New(status.Convert(err).Message())
	}
	var err error
	if c.Identity, err = a.holder(r.Context(), c, token); err != nil {
		return http.StatusUnauthorized, errors.New(status.Convert(a.refuse(c, Metrics, codes.Unauthenticated, "the token is refused: "+err.Error())).Message())
	}
	if _, err := a.decide(c, Metrics); err != nil {
		return http.StatusForbidden, errors.New(status.Convert(err).Message())
	}
	if err := (&http.Cookie{Name: sessionCookie, Value: token}).Valid(); err != nil {
		return http.StatusBadRequest, fmt.Errorf("a cookie cannot hold the token: %w", err)
	}
	setCookie(w, sessionCookie, token, http.SameSiteStrictMode, 0)
	return 0, nil
}

// setCookie sets a cookie for a number of seconds. 0 keeps it until the browser ends; a negative number deletes it.
func setCookie(w http.ResponseWriter, name, value string, site http.SameSite, seconds int) {
	http.SetCookie(w, &http.Cookie{Name: name, Value: value, Path: "/", Secure: true, HttpOnly: true, SameSite: site, MaxAge: seconds})
}

// client returns this controller's OAuth client at the issuer.
func (a *Authorizer) client(r *http.Request) (*oauth2.Config, *provider, int, error) {
	p := a.inForce().oidc
	if p == nil || r.TLS == nil {
		return nil, nil, http.StatusNotFound, errors.New("there is no login by OpenID Connect: want oidc in the policy, and TLS")
	}
	if err := a.limit(Caller{Address: r.RemoteAddr}, Metrics); err != nil {
		return nil, nil, http.StatusTooManyRequests, errors.New(status.Convert(err).Message())
	}
	issuer, err := p.connect(r.Context())
	if err != nil {
		return nil, nil, http.StatusBadGateway, fmt.Errorf("the issuer of tokens does not answer: %w", err)
	}
	scopes := []string{oidc.ScopeOpenID}
	if p.Claim != "sub" {
		scopes = append(scopes, "profile", "email")
	}
	return &oauth2.Config{ClientID: p.Audience, Endpoint: issuer.Endpoint(), RedirectURL: "https://" + r.Host + callback, Scopes: scopes}, p, 0, nil
}

// finish handles the issuer's redirect back to the controller.
func (a *Authorizer) finish(w http.ResponseWriter, r *http.Request) (int, error) {
	conf, p, code, err := a.client(r)
	if err != nil {
		return code, err
	}
	began, err := r.Cookie(loginCookie)
	if err != nil {
		return http.StatusBadRequest, errors.New("no login was begun in this browser within ten minutes: begin again at /login/oidc")
	}
	setCookie(w, loginCookie, "", http.SameSiteLaxMode, -1)
	parts := strings.Split(began.Value, ".")
	if len(parts) != 3 || subtle.ConstantTimeCompare([]byte(parts[0]), []byte(r.FormValue("state"))) != 1 {
		return http.StatusBadRequest, errors.New("the answer is for another login: begin again at /login/oidc")
	}
	if why := r.FormValue("error"); why != "" {
		return http.StatusUnauthorized, fmt.Errorf("the issuer refuses: %.200q", why)
	}
	ctx, cancel := context.WithTimeout(p.context(r.Context()), issuerWait)
	defer cancel()
	token, err := conf.Exchange(ctx, r.FormValue("code"), oauth2.VerifierOption(parts[2]))
	if err != nil {
		return http.StatusUnauthorized, fmt.Errorf("the issuer gives no token for its code: %w", err)
	}
	text, _ := token.Extra("id_token").(string)
	_, nonce, err := p.verify(ctx, text)
	switch {
	case err != nil:
		return http.StatusUnauthorized, fmt.Errorf("the token is refused: %w", err)
	case nonce != parts[1]:
		return http.StatusUnauthorized, errors.New("the token is for another login")
	}
	return a.enter(w, r, text)
}
