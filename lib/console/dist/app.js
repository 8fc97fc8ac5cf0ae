import{La as i,S as r,b as o,ca as m}from"./shell.js";var p=document.getElementById("app");p&&m().finally(()=>o(r(i,{}),p));
